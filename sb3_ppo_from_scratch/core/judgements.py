"""What all judgements have in common: the causes in their order, what a verdict is, how much of its room a policy uses.

Owns these; the reasoning lives beside it, by what is judged: settings, a rollout, an update.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from sb3_ppo_from_scratch.core.health import Finding

# In the order of causation: what stands first explains what follows.
CAUSES = (
    "not_finite",
    "log_probabilities",
    "frame_skip",
    "normalization_gamma",
    "entropy_collapse",
    "dead_policy",
    "reward_scale",
    "scale_drift",
    "joint_clipping",
    "shared_trunk",
    "discount_horizon",
    "kl",
    "clip_fraction_high",
    "clip_fraction_low",
    "explained_variance",
)
# What one measurement proves; everything else is noisy and has to persist.
CERTAIN = frozenset({"not_finite", "log_probabilities", "frame_skip", "normalization_gamma"})

# One entry per cause that was looked for: the finding, or None where all is well.
Verdicts: TypeAlias = dict[str, Finding | None]

NORMALISE = "Normalise the rewards (VecNormalize, with the algorithm's gamma) or scale them to order 1."


def entropy_share(entropy: float, max_entropy: float, n_continuous: int) -> float:
    """How much of its room a policy explores: 1 is all of it, 0 nothing.

    H / H_max for choices. For D continuous actions exp((H − H_max) / D), the width of the distribution relative to the
    bounds, since a differential entropy has no zero to compare with; it exceeds 1 for distributions wider than those.

    :param entropy: H in nats
    :param max_entropy: H_max in nats, of the uniform distribution
    :param n_continuous: D, 0 for choices
    :return: NaN where there is nothing to choose
    """
    if n_continuous:
        return math.exp(min((entropy - max_entropy) / n_continuous, 700.0))
    return entropy / max_entropy if max_entropy > 0 else math.nan
