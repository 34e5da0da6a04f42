"""Whether the whole learns: solved tasks, repeatable runs, and scores like those of Stable-Baselines3."""
