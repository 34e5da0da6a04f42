"""From settings to findings: do the environment, its wrappers and the algorithm fit each other?

Owns the reasoning and the words of the remedies; must not know models, environments, or how findings are shown.
"""

from __future__ import annotations

from sb3_ppo_from_scratch.core.health import Episodes, Finding, Thresholds
from sb3_ppo_from_scratch.core.judgements import Verdicts


def horizon_verdicts(episodes: Episodes, gamma: float, limits: Thresholds) -> Verdicts:
    """Whether the agent can see the rewards from where it stands: 1/(1 − γ) against the length of an episode.

    Long episodes alone are no fault, where rewards come all along; they are where much of the reward comes last.

    :param episodes: the latest
    :param gamma: γ in [0, 1]
    :param limits: of health
    :return: for discount_horizon
    """
    n_horizons = episodes.mean_length * (1 - gamma)
    pays_at_the_end = episodes.last_reward_share > 0.1
    limit = limits.max_horizons if pays_at_the_end else limits.max_horizons_at_all
    if not n_horizons > limit:
        return {"discount_horizon": None}
    return {
        "discount_horizon": Finding(
            "discount_horizon",
            f"gamma={gamma:g} looks 1/(1 − γ) = {1 / (1 - gamma):.0f} steps ahead, but episodes last "
            f"{episodes.mean_length:.0f}"
            + (", and much of their reward comes with the last step." if pays_at_the_end else "."),
            f"Raise gamma to {_with_horizon(episodes.mean_length)} or so (VecNormalize's as well), or reward earlier.",
        )
    }


def _with_horizon(n_steps: float) -> str:
    """γ = 1 − 1/n, with as many digits as keep it from being read as 1."""
    return f"{1 - 1 / n_steps:.{max(4, len(str(round(n_steps))))}g}"


def setting_verdicts(
    gamma: float, normalization_gamma: float | None, emulator_skip: int, is_wrapped_to_skip: bool
) -> Verdicts:
    """Settings of the environment that contradict each other or the algorithm's.

    :param gamma: γ of the algorithm
    :param normalization_gamma: γ of VecNormalize, None where it does not normalise rewards
    :param emulator_skip: frames that the environment itself plays per step
    :param is_wrapped_to_skip: whether a wrapper skips frames
    :return: for frame_skip and normalization_gamma
    """
    verdicts: Verdicts = {"frame_skip": None, "normalization_gamma": None}
    if emulator_skip > 1 and is_wrapped_to_skip:
        verdicts["frame_skip"] = Finding(
            "frame_skip",
            f"Frames are skipped twice: the environment plays {emulator_skip} per step, and AtariWrapper (or "
            "MaxAndSkipEnv) skips again.",
            'Use a "NoFrameskip-v4" id, or pass frameskip=1 to the environment.',
        )
    if normalization_gamma is not None and normalization_gamma != gamma:
        verdicts["normalization_gamma"] = Finding(
            "normalization_gamma",
            f"VecNormalize scales rewards by returns discounted with gamma={normalization_gamma:g}, but the algorithm "
            f"has gamma={gamma:g}: the returns that it learns are not of order 1.",
            f"Pass gamma={gamma:g} to VecNormalize.",
        )
    return verdicts
