"""SB3 policies of every kind with weights worth comparing, and what SB3 itself computes with them.

Owns construction and the stock side of each comparison; must not know the package's counterparts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticCnnPolicy, ActorCriticPolicy, MultiInputActorCriticPolicy
from torch import nn

from tests.environments import ACTION_SPACES, OBSERVATION_SPACES

ATARI = spaces.Box(0, 255, (4, 84, 84), np.uint8)
# 38 is no multiple of four: such pictures cannot be cut into whole blocks.
UNEVEN_IMAGE = spaces.Box(0, 255, (1, 38, 38), np.uint8)
UNIT_IMAGE = spaces.Box(0.0, 1.0, (1, 36, 36), np.float32)


@dataclass(frozen=True)
class Setup:
    """A policy to build: its class, its spaces by name or in person, and its keyword arguments."""

    policy: type[ActorCriticPolicy] = ActorCriticPolicy
    observation: str | spaces.Space[Any] = "vector"
    action: str = "discrete"
    kwargs: dict[str, Any] | None = None

    @property
    def observation_space(self) -> spaces.Space[Any]:
        return OBSERVATION_SPACES[self.observation] if isinstance(self.observation, str) else self.observation

    def build(self, seed: int = 0) -> ActorCriticPolicy:
        with th.random.fork_rng():
            th.manual_seed(seed)
            policy = self.policy(
                self.observation_space, ACTION_SPACES[self.action], lambda _: 1e-3, **(self.kwargs or {})
            )
            # SB3 begins with biases of zero and a tiny actor head, which would hide much.
            with th.no_grad():
                for parameter in policy.parameters():
                    parameter.add_(th.randn_like(parameter), alpha=0.1)
        return policy

    def observations(self, n: int, seed: int = 0) -> Any:
        """[n, ...] random observations, or a dict of such arrays, as a vector environment returns them."""
        space = self.observation_space
        space.seed(seed)
        samples = [space.sample() for _ in range(n)]
        if isinstance(space, spaces.Dict):
            return {key: np.stack([sample[key] for sample in samples]) for key in space.spaces}
        return np.stack(samples)


def cnn(observation: str | spaces.Space[Any] = "image", action: str = "discrete", **kwargs: Any) -> Setup:
    return Setup(
        ActorCriticCnnPolicy, observation, action, {"features_extractor_kwargs": {"features_dim": 16}, **kwargs}
    )


def multi_input(observation: str = "dict", action: str = "discrete", **kwargs: Any) -> Setup:
    return Setup(MultiInputActorCriticPolicy, observation, action, kwargs)


def as_tensors(observations: Any) -> Any:
    if isinstance(observations, dict):
        return {key: th.as_tensor(array) for key, array in observations.items()}
    return th.as_tensor(observations)


def stock_heads(policy: ActorCriticPolicy, observations: Any) -> tuple[th.Tensor, th.Tensor]:
    """Logits or means [B, K] and values [B], from SB3's own modules in SB3's own order, with their graph."""
    features = policy.extract_features(as_tensors(observations))
    if policy.share_features_extractor:
        latent_pi, latent_vf = policy.mlp_extractor(features)
    else:
        latent_pi = policy.mlp_extractor.forward_actor(features[0])
        latent_vf = policy.mlp_extractor.forward_critic(features[1])
    return policy.action_net(latent_pi), policy.value_net(latent_vf)[:, 0]


def gradients(policy: nn.Module) -> dict[str, th.Tensor]:
    return {
        name: th.zeros_like(parameter) if parameter.grad is None else parameter.grad.clone()
        for name, parameter in policy.named_parameters()
    }


def assert_close(actual: Any, expected: Any, tolerance: float = 1e-5) -> None:
    """Equal to rounding, in units of the largest entry: single entries may be as small as rounding itself."""
    actual, expected = (np.asarray(x.detach() if isinstance(x, th.Tensor) else x) for x in (actual, expected))
    assert actual.shape == expected.shape
    scale = max(float(np.abs(expected).max(initial=0.0)), 1e-6)
    assert float(np.abs(actual - expected).max(initial=0.0)) <= tolerance * scale
