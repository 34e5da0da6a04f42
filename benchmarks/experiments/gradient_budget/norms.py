"""What a training run does to actor and critic in every minibatch: gradient norms, clip factor, steps.

Owns the measurement from outside; must not know the environment or what is made of the numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import torch as th
from stable_baselines3.common.policies import ActorCriticPolicy

_CRITIC = ("mlp_extractor.value_net.", "value_net.")


class GradientBudget:
    """Follows a policy whose optimizer steps after ``backward()`` and a joint clipping of the gradient norm.

    The norms are those before clipping: each parameter tells its gradient the moment that it is complete.

    :param policy: with separate networks, trained by automatic differentiation
    :param max_grad_norm: bound that the training puts on the joint norm
    """

    def __init__(self, policy: ActorCriticPolicy, max_grad_norm: float) -> None:
        named = list(policy.named_parameters())
        self._groups = {
            "critic": [p for name, p in named if name.startswith(_CRITIC)],
            "actor": [p for name, p in named if not name.startswith(_CRITIC)],
        }
        self._max_grad_norm = max_grad_norm
        self._squares = dict.fromkeys(self._groups, 0.0)
        self._before: dict[str, th.Tensor] = {}
        self._rows: list[dict[str, float]] = []
        for name, parameters in self._groups.items():
            for parameter in parameters:
                parameter.register_post_accumulate_grad_hook(self._adder(name))  # type: ignore[no-untyped-call]
        policy.optimizer.register_step_pre_hook(self._begin_step)
        policy.optimizer.register_step_post_hook(self._end_step)

    def table(self) -> pd.DataFrame:
        """Every minibatch so far.

        :return: columns ``actor`` and ``critic`` (gradient norms), ``factor`` (≤ 1, of the joint clipping),
            ``learning_rate``, ``actor_step`` and ``critic_step`` (root mean square change of a parameter)
        """
        return pd.DataFrame(self._rows)

    def _adder(self, name: str) -> Any:
        def add(parameter: th.Tensor) -> None:
            assert parameter.grad is not None
            self._squares[name] += float(parameter.grad.square().sum())

        return add

    def _begin_step(self, *_: object) -> None:
        self._before = {name: _flat(parameters) for name, parameters in self._groups.items()}

    def _end_step(self, optimizer: th.optim.Optimizer, *_: object) -> None:
        norms = {name: square**0.5 for name, square in self._squares.items()}
        self._squares = dict.fromkeys(self._groups, 0.0)
        steps = {
            f"{name}_step": float((_flat(parameters) - self._before[name]).square().mean().sqrt())
            for name, parameters in self._groups.items()
        }
        joint = float(np.hypot(norms["actor"], norms["critic"]))
        rate = float(optimizer.param_groups[0]["lr"])
        self._rows.append(
            {**norms, "factor": min(1.0, self._max_grad_norm / joint) if joint else 1.0, "learning_rate": rate, **steps}
        )


def _flat(parameters: Iterable[th.Tensor]) -> th.Tensor:
    return th.cat([parameter.detach().flatten() for parameter in parameters])
