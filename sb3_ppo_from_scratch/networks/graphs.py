"""Letting go of the autograd graphs that an SB3 policy keeps in its action distribution.

Owns that clean-up; must not compute anything.
"""

from __future__ import annotations

from typing import Any

import torch as th
from stable_baselines3.common.policies import ActorCriticPolicy


def release_graphs(policy: ActorCriticPolicy) -> None:
    """Detach every tensor that the policy's distribution object remembers from its last use.

    The graphs would keep the activations of a whole minibatch alive and forbid ``copy.deepcopy``.

    :param policy: between updates, when no graph is needed any more
    """
    _detach(policy.action_dist)


def _detach(owner: Any) -> None:
    for name, value in vars(owner).items():
        if isinstance(value, th.Tensor):
            if value.grad_fn is not None:
                setattr(owner, name, value.detach())
            continue
        for part in value if isinstance(value, (list, tuple)) else (value,):
            if "distribution" in type(part).__module__:
                _detach(part)
