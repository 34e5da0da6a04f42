"""The parity matrix: what a learning run can be made of, one unusual part at a time.

Owns the list and the user code that it needs; must not know how runs are compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import RolloutBuffer as StockRolloutBuffer
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv, VecFrameStack, VecNormalize, VecTransposeImage

from tests.environments import ACTION_SPACES, environment_makers
from tests.parity.comparison import Case

RAGGED = pytest.mark.filterwarnings(r"ignore:(.|\n)*truncated mini-batch:UserWarning")
TIME_LIMIT = {"episode_length": None, "time_limit": 5}
GRAY_CHANNELS_LAST = spaces.Box(0, 255, (36, 36, 1), np.uint8)


UNUSUAL_OBSERVATIONS = {
    "float64": spaces.Box(-1.0, 1.0, (3,), np.float64),
    "int16": spaces.Box(-100, 100, (3,), np.int16),
    "unbounded": spaces.Box(-np.inf, np.inf, (3,), np.float32),
    "matrix": spaces.Box(-1.0, 1.0, (2, 3), np.float32),
    "binary_matrix": spaces.MultiBinary([2, 3]),
}
UNUSUAL_ACTIONS = {
    "float64": spaces.Box(-1.0, 1.0, (2,), np.float64),
    "matrix": spaces.Box(-1.0, 1.0, (2, 2), np.float32),
    "single_bit": spaces.MultiBinary(1),
    "single_choice": spaces.Discrete(1),
}


class RestlessExtractor(BaseFeaturesExtractor):
    """Behaves differently while acting and while learning, and draws random numbers while learning."""

    def __init__(self, observation_space: spaces.Box, features_dim: int = 8) -> None:
        super().__init__(observation_space, features_dim)
        n_inputs = int(np.prod(observation_space.shape))
        self.layers = th.nn.Sequential(
            th.nn.Linear(n_inputs, features_dim), th.nn.BatchNorm1d(features_dim), th.nn.Dropout(0.2)
        )

    def forward(self, observations: th.Tensor) -> th.Tensor:
        return self.layers(observations)


class ScaledValuePolicy(ActorCriticPolicy):
    """Overrides all that an update may call."""

    def forward(self, obs: th.Tensor, deterministic: bool = False) -> tuple[th.Tensor, th.Tensor, th.Tensor]:
        actions, values, log_prob = super().forward(obs, deterministic)
        return actions, 2 * values, log_prob

    def evaluate_actions(self, obs: Any, actions: th.Tensor) -> tuple[th.Tensor, th.Tensor, th.Tensor | None]:
        values, log_prob, entropy = super().evaluate_actions(obs, actions)
        return 2 * values, log_prob, entropy

    def predict_values(self, obs: Any) -> th.Tensor:
        return 2 * super().predict_values(obs)


class ShiftedRewardBuffer(StockRolloutBuffer):
    """A user's own buffer."""

    def add(self, obs: Any, action: Any, reward: np.ndarray[Any, Any], *rest: Any) -> None:
        super().add(obs, action, reward - 0.25, *rest)


def subprocesses(n_envs: int, **settings: Any) -> VecEnv:
    return SubprocVecEnv(environment_makers(n_envs, **settings))


def every_action_family() -> list[Any]:
    return [
        pytest.param(Case({"action": action}, n_envs), id=f"{action}_actions_{n_envs}_envs")
        for action in ACTION_SPACES
        for n_envs in (1, 4)
    ]


CASES = [
    *every_action_family(),
    *(
        pytest.param(Case({"observation": observation}, 4), id=f"{observation}_observations")
        for observation in ("discrete", "multi_discrete", "multi_binary")
    ),
    *(
        pytest.param(Case({"observation": "image"}, n_envs, "CnnPolicy"), id=f"image_{n_envs}_envs")
        for n_envs in (1, 4)
    ),
    *(
        pytest.param(Case({"observation": "dict"}, n_envs, "MultiInputPolicy"), id=f"dict_{n_envs}_envs")
        for n_envs in (1, 4)
    ),
    pytest.param(
        Case({"observation": "dict", "action": "box", **TIME_LIMIT}, 2, "MultiInputPolicy"),
        id="dict_time_limit",
    ),
    pytest.param(
        Case({"observation": "channels_last_image"}, 2, "CnnPolicy", wrap=VecTransposeImage),
        id="transposed_image",
    ),
    pytest.param(Case({"observation": "channels_last_image"}, 2, "CnnPolicy"), id="image_transposed_on_construction"),
    pytest.param(
        Case(
            {"observation": GRAY_CHANNELS_LAST, **TIME_LIMIT},
            2,
            "CnnPolicy",
            wrap=lambda env: VecFrameStack(env, n_stack=4),
        ),
        id="stacked_frames",
    ),
    pytest.param(Case(n_envs=4, settings={"clip_range_vf": 0.05}), id="value_clipping"),
    pytest.param(Case(n_envs=4, settings={"ent_coef": 0.02, "vf_coef": 0.7}), id="entropy_bonus"),
    pytest.param(Case(n_envs=4, settings={"normalize_advantage": False}), id="raw_advantages"),
    pytest.param(Case(n_envs=4, settings={"max_grad_norm": 0.01}), id="tight_gradient_norm"),
    pytest.param(Case(n_envs=4, settings={"gamma": 0.9, "gae_lambda": 1.0}), id="monte_carlo"),
    pytest.param(Case(n_envs=4, settings={"gamma": 0.9, "gae_lambda": 0.0}), id="one_step_advantages"),
    pytest.param(Case(n_envs=3, settings={"batch_size": 13}), id="ragged_minibatch", marks=RAGGED),
    pytest.param(Case(n_envs=3, settings={"batch_size": 47}), id="lone_last_sample", marks=RAGGED),
    pytest.param(Case(settings={"batch_size": 64}), id="minibatch_beyond_rollout", marks=RAGGED),
    pytest.param(
        Case(
            n_envs=4,
            settings={
                "learning_rate": LinearSchedule(3e-3, 1e-4, 1.0),
                "clip_range": LinearSchedule(0.3, 0.05, 1.0),
                "clip_range_vf": LinearSchedule(0.5, 0.01, 1.0),
            },
        ),
        id="linear_schedules",
    ),
    pytest.param(Case(n_envs=4, wrap=VecNormalize), id="vec_normalize"),
    pytest.param(Case(TIME_LIMIT, 4, wrap=VecNormalize), id="vec_normalize_time_limit"),
    pytest.param(Case(n_envs=4, calls=(2, 1)), id="learn_in_two_calls"),
    pytest.param(Case(n_envs=4, calls=(1.5, 0.25)), id="budgets_that_end_inside_a_rollout"),
    pytest.param(Case(TIME_LIMIT, 2, build=subprocesses), id="subprocesses"),
    pytest.param(
        Case(n_envs=4, settings={"policy_kwargs": {"features_extractor_class": RestlessExtractor}}),
        id="custom_features_extractor",
    ),
    pytest.param(
        Case(
            n_envs=4,
            settings={"policy_kwargs": {"optimizer_class": th.optim.RMSprop, "net_arch": {"pi": [8], "vf": [16]}}},
        ),
        id="custom_optimizer_and_net_arch",
    ),
    pytest.param(Case(TIME_LIMIT, 4, ScaledValuePolicy), id="custom_policy"),
    pytest.param(
        Case(TIME_LIMIT, 4, settings={"rollout_buffer_class": ShiftedRewardBuffer}), id="custom_rollout_buffer"
    ),
    *(
        pytest.param(Case({"observation": space, "action": "box"}, 2), id=f"{name}_observations")
        for name, space in UNUSUAL_OBSERVATIONS.items()
    ),
    *(pytest.param(Case({"action": space}, 2), id=f"{name}_actions") for name, space in UNUSUAL_ACTIONS.items()),
    pytest.param(
        Case(
            {"observation": "dict"},
            2,
            "MultiInputPolicy",
            {"policy_kwargs": {"share_features_extractor": False, "ortho_init": False}},
        ),
        id="separate_features",
    ),
]
