"""The surrogate objectives of the PPO paper's section 6.1, and their published scores.

Owns the recipes and Table 1; must not know any result.
"""

from __future__ import annotations

from benchmarks.experiments.training.recipes import Recipe

RANDOM, NO_CLIP = "random", "no-clip"
CLIPS = ("clip-0.1", "clip-0.2", "clip-0.3")
ADAPTIVE = ("adaptive-kl-0.003", "adaptive-kl-0.01", "adaptive-kl-0.03")
FIXED = ("fixed-kl-0.3", "fixed-kl-1", "fixed-kl-3", "fixed-kl-10")

# arXiv:1707.06347, table 1: average normalised scores over 7 tasks × 3 seeds after a million steps.
PUBLISHED = {
    NO_CLIP: -0.39,
    **dict(zip(CLIPS, (0.76, 0.82, 0.70), strict=True)),
    **dict(zip(ADAPTIVE, (0.68, 0.74, 0.71), strict=True)),
    **dict(zip(FIXED, (0.62, 0.71, 0.72, 0.69), strict=True)),
}

# Table 3 of the paper. Observations are normalised and gradients not clipped, as in the authors' own code (baselines,
# ppo1); networks are separate, as there, so that the weight of the value loss says nothing to the actor.
_PAPER = Recipe(
    ppo={
        "learning_rate": 3e-4,
        "n_steps": 2048,
        "batch_size": 64,
        "n_epochs": 10,
        "gamma": 0.99,
        "gae_lambda": 0.95,
        "ent_coef": 0.0,
        "max_grad_norm": float("inf"),
    }
)

RECIPES = {
    RANDOM: Recipe(plays_at_random=True),
    NO_CLIP: _PAPER.but(objective="unclipped"),
    **{name: _PAPER.but(clip_range=float(name.rpartition("-")[2])) for name in CLIPS},
    **{
        name: _PAPER.but(objective="adaptive_kl", kl_target=float(name.rpartition("-")[2]), kl_coef=1.0)
        for name in ADAPTIVE
    },
    **{name: _PAPER.but(objective="kl_penalty", kl_coef=float(name.rpartition("-")[2])) for name in FIXED},
}
