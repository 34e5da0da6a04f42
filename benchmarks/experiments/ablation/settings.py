"""PPO with all its details, and with each of them switched off.

Owns the recipes; must not know any result.
"""

from __future__ import annotations

import torch as th
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

from benchmarks.experiments.training.recipes import LinearDecay, Recipe

ALL = "all-details"
RAW_REWARDS, NO_VALUE_CLIP = "raw-rewards", "no-value-clipping"
RAW_NO_VALUE_CLIP = "raw-rewards+no-value-clipping"
RAW_NO_BUDGET = "raw-rewards+no-value-clipping+no-gradient-clipping"
SHORT_HORIZON = "gamma-0.99"


class SharedTrunk(BaseFeaturesExtractor):
    """Two hidden layers that actor and critic share.

    :param observation_space: of vectors
    """

    def __init__(self, observation_space: spaces.Box) -> None:
        super().__init__(observation_space, features_dim=64)
        (n_inputs,) = observation_space.shape
        self._layers = th.nn.Sequential(th.nn.Linear(n_inputs, 64), th.nn.Tanh(), th.nn.Linear(64, 64), th.nn.Tanh())

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """Features.

        :param observations: [B, n_inputs]
        :return: [B, 64]
        """
        features: th.Tensor = self._layers(observations)
        return features


# The document's LunarLander: rollouts of 2,048 (600 k steps are its 293 updates), Adam 3e-4 annealed, ε = 0.2 for
# policy and value alike, γ = 0.999, joint clipping at 0.5; what it does not say is usual for continuous states.
_COMPLETE = Recipe(
    n_envs=16,
    norm_obs=True,
    norm_reward=True,
    ppo={
        "learning_rate": LinearDecay(3e-4),
        "n_steps": 128,
        "batch_size": 256,
        "n_epochs": 10,
        "gamma": 0.999,
        "gae_lambda": 0.95,
        "ent_coef": 0.01,
        "clip_range_vf": 0.2,
        "value_clip": "openai",
        "max_grad_norm": 0.5,
    },
)

RECIPES = {
    ALL: _COMPLETE,
    RAW_REWARDS: _COMPLETE.but(norm_reward=False),
    NO_VALUE_CLIP: _COMPLETE.but(clip_range_vf=None),
    RAW_NO_VALUE_CLIP: _COMPLETE.but(norm_reward=False, clip_range_vf=None),
    RAW_NO_BUDGET: _COMPLETE.but(norm_reward=False, clip_range_vf=None, max_grad_norm=float("inf")),
    SHORT_HORIZON: _COMPLETE.but(gamma=0.99),
    "raw-observations": _COMPLETE.but(norm_obs=False),
    "raw-advantages": _COMPLETE.but(advantage_normalization="none"),
    "no-orthogonal-initialization": _COMPLETE.but(policy_kwargs={"ortho_init": False}),
    "adam-epsilon-1e-8": _COMPLETE.but(policy_kwargs={"optimizer_kwargs": {"eps": 1e-8}}),
    "no-annealing": _COMPLETE.but(learning_rate=3e-4),
    "no-gradient-clipping": _COMPLETE.but(max_grad_norm=float("inf")),
    "monte-carlo-advantages": _COMPLETE.but(gae_lambda=1.0),
    "one-step-advantages": _COMPLETE.but(gae_lambda=0.0),
    "no-entropy-bonus": _COMPLETE.but(ent_coef=0.0),
    "one-environment": _COMPLETE.but(n_envs=1, n_steps=2048),
    "shared-trunk": _COMPLETE.but(
        policy_kwargs={"features_extractor_class": SharedTrunk, "net_arch": {"pi": [], "vf": []}}
    ),
    "time-limits-terminal": _COMPLETE.but(truncation="terminal"),
    "one-epoch": _COMPLETE.but(n_epochs=1),
    "no-clip": _COMPLETE.but(objective="unclipped"),
}
# Those of which the document says that each turns a solved task into a wrecked one, and what mixes them.
LOAD_BEARING = (RAW_REWARDS, RAW_NO_VALUE_CLIP, RAW_NO_BUDGET, SHORT_HORIZON)
