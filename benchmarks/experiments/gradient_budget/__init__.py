"""`python -m benchmarks gradient-budget`: how actor and critic share the clipped gradient norm."""
