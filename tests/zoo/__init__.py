"""Owns the tests of the zoo room; its commands run in subprocesses, because rl_zoo3 patches Gymnasium."""
