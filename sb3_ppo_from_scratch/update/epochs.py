"""The loop over epochs and minibatches, and the one early stop that PPO has.

Owns the order and the averages that SB3 logs; must not know how a minibatch is scored or stepped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch as th

from sb3_ppo_from_scratch.core.records import LossTerms, Minibatch, UpdateReport, UpdateSettings
from sb3_ppo_from_scratch.update.engine import UpdateEngine


def run_epochs(
    engine: UpdateEngine,
    minibatches: Callable[[int], Iterable[Minibatch]],
    settings: UpdateSettings,
) -> UpdateReport:
    """Update the policy from one rollout.

    Source: Schulman et al. 2017 (arXiv:1707.06347), algorithm 1. As in SB3 2.9, ``target_kl`` is checked after each
    minibatch is scored and before it is stepped, and stops the whole update at 1.5 × its value.

    :param engine: scores and steps one minibatch
    :param minibatches: given the batch size, yields one epoch of minibatches in fresh random order
    :param settings: of this update
    :return: what happened, averaged as SB3 averages it
    """
    history: list[LossTerms] = []
    epoch_start = 0
    for epoch in range(settings.n_epochs):
        epoch_start = len(history)
        for minibatch in minibatches(settings.batch_size):
            terms = engine.evaluate(minibatch, settings)
            history.append(terms._replace(loss=terms.loss.detach()))
            if settings.target_kl is not None and _exceeds(terms.approx_kl, settings.target_kl):
                return _report(history, epoch_start, epoch + 1, terms.approx_kl.item())
            engine.step(terms.loss, settings)
    return _report(history, epoch_start, settings.n_epochs, None)


def _exceeds(approx_kl: th.Tensor, target_kl: float) -> bool:
    # In NumPy, so that the bound is rounded to float32 before comparing, as it is in SB3.
    return bool(approx_kl.cpu().numpy() > 1.5 * target_kl)


def _report(history: list[LossTerms], epoch_start: int, n_epochs: int, stopping_kl: float | None) -> UpdateReport:
    columns = LossTerms(*(th.stack(column).cpu() for column in zip(*history, strict=True)))
    return UpdateReport(
        policy_gradient_loss=_mean(columns.policy_loss),
        value_loss=_mean(columns.value_loss),
        entropy_loss=_mean(columns.entropy_loss),
        clip_fraction=_mean(columns.clip_fraction),
        # SB3 averages this one in float32, the others in float64.
        approx_kl=float(np.mean(columns.approx_kl[epoch_start:].numpy())),
        loss=columns.loss[-1].item(),
        n_epochs=n_epochs,
        stopping_kl=stopping_kl,
    )


def _mean(column: th.Tensor) -> float:
    return float(np.mean(column.double().numpy()))
