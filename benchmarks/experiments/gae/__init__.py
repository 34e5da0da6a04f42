"""`python -m benchmarks gae`: bias and variance of generalized advantage estimation, exactly."""
