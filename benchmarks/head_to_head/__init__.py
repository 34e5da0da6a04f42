"""`python -m benchmarks head-to-head`: what this PPO learns beside its peers, in how many steps and how long."""
