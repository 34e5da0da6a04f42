"""Runs Stable-Baselines3's own PPO tests with its PPO replaced by ours: `python -m tests.conformance`.

Holds nothing of Stable-Baselines3: its tests are fetched for the installed version.
"""
