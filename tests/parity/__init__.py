"""Proof that this PPO is the PPO of Stable-Baselines3 2.9, bit for bit, and that the proof has teeth."""
