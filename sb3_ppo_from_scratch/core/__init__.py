"""Pure functions of NumPy arrays and torch tensors: the arithmetic of PPO.

Must not know Stable-Baselines3, gymnasium, networks or the algorithm that calls it.
"""
