"""Claims about the rows of the lineage that SB3 has no class for: REINFORCE, alone and with a baseline."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_ppo_from_scratch import PPO

GAMMA, LEARNING_RATE = 0.9, 0.1
EPISODE, N_STEPS = 8, 32
FloatArray = npt.NDArray[np.float32]


class EightStepsEnv(gym.Env[FloatArray, int]):
    """Random observations; the reward is the action times the first of them. An episode ends after eight steps."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-1.0, 1.0, (3,), np.float32)
        self.action_space = spaces.Discrete(3)
        self._step, self._seen = 0, np.zeros(3, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        super().reset(seed=seed)
        self._step = 0
        return self._next(), {}

    def step(self, action: int) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        reward = float(action * self._seen[0])
        self._step += 1
        return self._next(), reward, self._step == EPISODE, False, {}

    def _next(self) -> FloatArray:
        self._seen = self.np_random.uniform(-1, 1, 3).astype(np.float32)
        return self._seen


def reinforce(engine: str, vf_coef: float) -> PPO:
    """PPO with the settings of the first two rows; whole episodes in a rollout."""
    model = PPO(
        "MlpPolicy",
        DummyVecEnv([EightStepsEnv]),
        learning_rate=LEARNING_RATE,
        n_steps=N_STEPS,
        batch_size=N_STEPS,
        n_epochs=1,
        gamma=GAMMA,
        gae_lambda=1.0,
        normalize_advantage=False,
        vf_coef=vf_coef,
        max_grad_norm=1e6,
        policy_kwargs={"optimizer_class": th.optim.SGD},
        seed=0,
        device="cpu",
        engine=engine,
    )
    if vf_coef == 0:
        th.nn.init.zeros_(model.policy.value_net.weight)
    return model


def actor(model: PPO) -> list[th.nn.Parameter]:
    return [*model.policy.mlp_extractor.policy_net.parameters(), *model.policy.action_net.parameters()]


def rewards_to_go(rewards: FloatArray) -> FloatArray:
    """Σ_k γ^k r_{t+k} up to the end of each episode of eight steps."""
    discounts = GAMMA ** np.arange(EPISODE)
    episodes = rewards.reshape(-1, EPISODE)
    return np.array(
        [episode[t:] @ discounts[: EPISODE - t] for episode in episodes for t in range(EPISODE)], np.float32
    )


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("vf_coef", [0.0, 0.5], ids=["alone", "with_a_baseline"])
def test_an_update_is_one_step_along_the_score_function_times_the_return(engine: str, vf_coef: float) -> None:
    model = reinforce(engine, vf_coef)
    update, seen = model.train, {}

    def watched_update() -> None:
        buffer = model.rollout_buffer
        returns = rewards_to_go(buffer.rewards[:, 0])
        baseline = buffer.values[:, 0] if vf_coef else np.zeros(N_STEPS, np.float32)
        observations, actions = th.as_tensor(buffer.observations[:, 0]), th.as_tensor(buffer.actions[:, 0, 0]).long()
        _, log_prob, _ = model.policy.evaluate_actions(observations, actions)
        loss = -(log_prob * th.as_tensor(returns - baseline)).mean()
        gradients = th.autograd.grad(loss, actor(model))
        seen["expected"] = [p.detach() - LEARNING_RATE * g for p, g in zip(actor(model), gradients, strict=True)]
        seen["before"] = [p.detach().clone() for p in actor(model)]
        update()

    model.train = watched_update  # type: ignore[method-assign]
    model.learn(N_STEPS)
    for before, expected, after in zip(seen["before"], seen["expected"], actor(model), strict=True):
        assert not th.equal(before, after)
        th.testing.assert_close(after.detach(), expected, atol=1e-6, rtol=1e-5)
