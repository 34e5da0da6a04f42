"""Owns the way into rl_zoo3: registration, search space, default configurations, command line.
Must not know how PPO computes anything; importing it imports neither torch nor rl_zoo3.
"""
