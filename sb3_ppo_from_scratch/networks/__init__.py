"""Hand-written counterparts of the networks inside SB3's own policies, on the very parameters of the policy.

Must not know rollouts, losses, schedules or the algorithm.
"""
