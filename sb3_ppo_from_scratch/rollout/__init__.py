"""Storage and collection: what the environment and the policy said, kept until one update has used it.

Must not know losses, optimizers or hyperparameter schedules.
"""
