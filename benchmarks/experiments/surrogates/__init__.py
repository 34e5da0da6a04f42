"""`python -m benchmarks surrogates`: the objectives of the PPO paper, held against its Table 1."""
