"""`python -m benchmarks throughput`: how many times faster than its peers this PPO is, measured side by side."""
