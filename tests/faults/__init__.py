"""What Stable-Baselines3 2.9 gets wrong and this package mends: one file for each kind of fault."""
