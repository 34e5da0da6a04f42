"""A2C is PPO with one epoch, one minibatch, λ = 1 and no normalisation: equal to the bit where every ratio is 1.

A2C descends along −Â·∇log π and PPO along −Â·r·∇log π with r = π/π_old. Before the first step r = 1, up to this: log
π_old was computed while acting, E observations at a time, and log π from all T·E at once, in which a matrix product may
round another way. That last bit is the whole difference; take it away, and nothing is left.
"""

from __future__ import annotations

from typing import Any

import pytest
import stable_baselines3
import torch as th
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike

from sb3_ppo_from_scratch import PPO, RolloutBuffer
from sb3_ppo_from_scratch.core.records import Minibatch
from sb3_ppo_from_scratch.update import objective
from tests.environments import ACTION_SPACES, vector_environment
from tests.parity.comparison import Run, continued, differences

T, N_UPDATES = 5, 12
# A2C's own defaults, and what PPO has to be told to have them.
SHARED = {"n_steps": T, "gamma": 0.99, "ent_coef": 0.01, "learning_rate": 7e-4, "seed": 3, "device": "cpu"}
RMSPROP = {"alpha": 0.99, "eps": 1e-5, "weight_decay": 0}
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "rmsprop": {"optimizer_class": th.optim.RMSprop, "optimizer_kwargs": RMSPROP},
    "rmsprop_tf_like": {"optimizer_class": RMSpropTFLike, "optimizer_kwargs": RMSPROP},
    "adam": {},
}


class BufferWithRatiosOfOne(RolloutBuffer):
    """Serves as π_old what the policy says of the very minibatch that it serves."""

    policy: Any = None

    def _get_samples(self, *arguments: Any) -> Minibatch:
        minibatch = super()._get_samples(*arguments)
        actions = minibatch.actions
        if self.action_space.shape == ():
            actions = actions.long().flatten()
        with th.no_grad():
            _, log_prob, _ = self.policy.evaluate_actions(minibatch.observations, actions)
        return minibatch._replace(old_log_prob=log_prob)


def learnt(algorithm: type[OnPolicyAlgorithm], action: str, n_envs: int, optimizer: str, **settings: Any) -> Run:
    env = vector_environment(n_envs, action=action, episode_length=11, time_limit=4)
    model = algorithm("MlpPolicy", env, policy_kwargs=dict(OPTIMIZERS[optimizer]), **{**SHARED, **settings})
    if isinstance(model.rollout_buffer, BufferWithRatiosOfOne):
        model.rollout_buffer.policy = model.policy
    return continued(model, N_UPDATES * T * n_envs)


def a2c(*arguments: Any) -> Run:
    action, n_envs, optimizer = arguments
    # Its RMSprop is its default; the others are handed to the policy, as PPO's are.
    return learnt(stable_baselines3.A2C, action, n_envs, optimizer, use_rms_prop=optimizer == "rmsprop")


def ppo(*arguments: Any, **settings: Any) -> Run:
    action, n_envs, optimizer = arguments
    as_a2c = {"n_epochs": 1, "batch_size": T * n_envs, "gae_lambda": 1.0, "normalize_advantage": False}
    return learnt(PPO, action, n_envs, optimizer, **as_a2c, engine="reference", **settings)


def without_log(found: list[str]) -> list[str]:
    """A2C logs under other names; parameters, optimizer, counters, observations and generators are compared."""
    return [entry for entry in found if not entry.startswith("log")]


@pytest.mark.parametrize("n_envs", [1, 4])
@pytest.mark.parametrize("action", ACTION_SPACES)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", ["clip", "unclipped"])
def test_where_every_ratio_is_one_ppo_is_a2c_bit_for_bit(name: str, optimizer: str, action: str, n_envs: int) -> None:
    expected = a2c(action, n_envs, optimizer)
    run = ppo(action, n_envs, optimizer, objective=name, rollout_buffer_class=BufferWithRatiosOfOne)
    assert run.model._n_updates == N_UPDATES
    assert without_log(differences(run, expected)) == []


@pytest.mark.parametrize("n_envs", [1, 4])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_as_it_comes_ppo_is_a2c_up_to_the_last_bit_of_the_ratio(
    optimizer: str, n_envs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    deviations: list[float] = []
    clip = objective.POLICY_OBJECTIVES["clip"]

    def watched(log_ratio: th.Tensor, ratio: th.Tensor, *rest: Any) -> th.Tensor:
        deviations.append(float((ratio.detach() - 1).abs().max()))
        return clip.loss(log_ratio, ratio, *rest)

    monkeypatch.setitem(objective.POLICY_OBJECTIVES, "clip", clip._replace(loss=watched))
    run, expected = ppo("discrete", n_envs, optimizer), a2c("discrete", n_envs, optimizer)
    assert len(deviations) == N_UPDATES
    assert max(deviations) <= 8 * th.finfo(th.float32).eps
    assert (without_log(differences(run, expected)) == []) or max(deviations) > 0
    for ours, theirs in zip(run.model.policy.parameters(), expected.model.policy.parameters(), strict=True):
        th.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "other", [{"gae_lambda": 0.95}, {"normalize_advantage": True}, {"n_epochs": 2}, {"batch_size": 10}], ids=str
)
def test_each_of_the_four_settings_is_needed(other: dict[str, Any]) -> None:
    settings = {"n_epochs": 1, "batch_size": 20, "gae_lambda": 1.0, "normalize_advantage": False, **other}
    run = learnt(PPO, "discrete", 4, "adam", **settings, engine="reference", rollout_buffer_class=BufferWithRatiosOfOne)
    assert any(entry.startswith("policy/") for entry in differences(run, a2c("discrete", 4, "adam")))
