"""`python -m benchmarks baseline`: what a baseline does to the variance, and to the signal, of the policy gradient."""
