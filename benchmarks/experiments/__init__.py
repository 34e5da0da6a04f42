"""The experiments of the documents that teach PPO, repeated with this package: each a table, a picture, a verdict."""
