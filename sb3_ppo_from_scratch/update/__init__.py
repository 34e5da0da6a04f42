"""How a rollout becomes optimizer steps: engines for one minibatch, and the epochs that drive them.

Must not know environments, callbacks, schedules or the algorithm object.
"""
