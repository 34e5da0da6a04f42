"""`python -m benchmarks clip-fraction`: how much of a rollout is clipped away as it is used again."""
