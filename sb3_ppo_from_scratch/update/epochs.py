"""The loop over epochs and minibatches, and the one early stop that PPO has.

Owns the order and the averages that SB3 logs; must not know how a minibatch is scored or stepped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch as th

from sb3_ppo_from_scratch.core.arrays import Array
from sb3_ppo_from_scratch.core.records import LossTerms, UpdateReport, UpdateSettings
from sb3_ppo_from_scratch.update.engine import UpdateEngine


def run_epochs(engine: UpdateEngine, rollout_buffer: Any, settings: UpdateSettings) -> UpdateReport:
    """Update the policy from one rollout.

    Source: Schulman et al. 2017 (arXiv:1707.06347), algorithm 1. As in SB3 2.9, ``target_kl`` is checked after each
    minibatch is scored and before it is stepped, and stops the whole update at 1.5 × its value.

    :param engine: serves, scores and steps minibatches
    :param rollout_buffer: full
    :param settings: of this update
    :return: what happened, averaged as SB3 averages it
    """
    history: list[LossTerms] = []
    grad_norms: list[Array] = []
    epoch_starts: list[int] = []
    stopping_kl = None
    engine.begin(rollout_buffer, settings.batch_size)
    try:
        while len(epoch_starts) < settings.n_epochs and stopping_kl is None:
            epoch_starts.append(len(history))
            for minibatch in engine.minibatches():
                terms = engine.evaluate(minibatch, settings)
                history.append(terms)
                if settings.target_kl is not None and _exceeds(terms.approx_kl, settings.target_kl):
                    stopping_kl = float(terms.approx_kl)
                    break
                grad_norms.append(engine.step(settings))
    finally:
        engine.finish()
    return _report(history, grad_norms, epoch_starts, stopping_kl)


def _exceeds(approx_kl: Array, target_kl: float) -> bool:
    # In NumPy, so that the bound is rounded to float32 before comparing, as it is in SB3.
    return bool(_on_host([approx_kl])[0] > 1.5 * target_kl)


def _report(
    history: list[LossTerms], grad_norms: list[Array], epoch_starts: list[int], stopping_kl: float | None
) -> UpdateReport:
    columns = LossTerms(*(_on_host(column) for column in zip(*history, strict=True)))
    last_epoch = slice(epoch_starts[-1], None)
    return UpdateReport(
        policy_gradient_loss=_mean(columns.policy_loss),
        value_loss=_mean(columns.value_loss),
        entropy_loss=_mean(columns.entropy_loss),
        clip_fraction=_mean(columns.clip_fraction),
        # SB3 averages this one in float32, the others in float64.
        approx_kl=float(np.mean(columns.approx_kl[last_epoch])),
        approx_kl_k1=_mean(columns.approx_kl_k1[last_epoch]),
        grad_norm=_mean(_on_host(grad_norms)) if grad_norms else float("nan"),
        loss=float(columns.loss[-1]),
        n_epochs=len(epoch_starts),
        stopping_kl=stopping_kl,
        minibatches=columns,
        epoch_starts=tuple(epoch_starts),
    )


def _on_host(column: Sequence[Array]) -> npt.NDArray[np.float32]:
    # One transfer for all minibatches: reading each when it is made would stall an accelerator.
    if isinstance(column[0], th.Tensor):
        return th.stack(list(column)).cpu().numpy()
    return np.array(column, dtype=np.float32)


def _mean(column: npt.NDArray[np.float32]) -> float:
    return float(np.mean(column, dtype=np.float64))
