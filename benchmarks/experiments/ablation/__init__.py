"""`python -m benchmarks ablation`: each implementation detail of PPO switched off."""
