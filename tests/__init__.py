"""The tests of sb3_ppo_from_scratch, a regular package so that no other `tests` on the path can shadow it."""
