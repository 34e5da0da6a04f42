"""Two training runs side by side: what to train, what to keep of it, and every difference between two of them.

Owns the comparison; must not know which differences a test expects.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import stable_baselines3
import torch as th
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize

from sb3_ppo_from_scratch import PPO
from tests.environments import vector_environment

# Enough learning for the policy to leave the clip range within three rollouts.
DEFAULTS: dict[str, Any] = {
    "n_steps": 16,
    "batch_size": 8,
    "n_epochs": 3,
    "learning_rate": 3e-3,
    "seed": 5,
    "device": "cpu",
}
N_ROLLOUTS = 3
_CLOCK = ("time/fps", "time/time_elapsed")
# Logged beside SB3's keys; see ``tests/unit/test_training_log.py``.
BEYOND_SB3 = ("train/grad_norm", "train/approx_kl_k1")


@dataclass(frozen=True)
class Case:
    """One point of the parity matrix.

    :param environment: arguments of ``HiddenStateEnv``
    :param n_envs: environments side by side
    :param policy: name or class
    :param settings: arguments of PPO on top of ``DEFAULTS``
    :param build: makes the vector environment
    :param wrap: wraps it
    :param calls: rollouts asked of each call of ``learn``; a fraction is rounded up to a whole rollout
    """

    environment: dict[str, Any] = field(default_factory=dict)
    n_envs: int = 1
    policy: Any = "MlpPolicy"
    settings: dict[str, Any] = field(default_factory=dict)
    build: Callable[..., VecEnv] = vector_environment
    wrap: Callable[[VecEnv], VecEnv] | None = None
    calls: tuple[float, ...] = (N_ROLLOUTS,)

    def vector_environment(self) -> VecEnv:
        env = self.build(self.n_envs, **self.environment)
        return env if self.wrap is None else self.wrap(env)


class LogRecorder(KVWriter):
    """Keeps every dump of a logger, except what a clock says and what SB3 does not log."""

    def __init__(self) -> None:
        self.dumps: list[tuple[int, dict[str, Any]]] = []

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
        self.dumps.append(
            (step, {key: value for key, value in key_values.items() if key not in (*_CLOCK, *BEYOND_SB3)})
        )

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Run:
    """A model after training, and the log it wrote."""

    model: OnPolicyAlgorithm
    record: dict[str, Any]


def trained_stock(case: Case, **settings: Any) -> Run:
    """The case trained by ``stable_baselines3.PPO``."""
    return trained(stable_baselines3.PPO, case, **settings)


def trained_ours(case: Case, **settings: Any) -> Run:
    """The case trained by the reference engine of this package."""
    return trained(PPO, case, engine="reference", **settings)


def trained(algorithm: type[OnPolicyAlgorithm], case: Case, **settings: Any) -> Run:
    """Train a fresh model on a fresh environment for ``N_ROLLOUTS`` rollouts.

    :param algorithm: the class to train
    :param case: what to train it on
    :param settings: further arguments of its constructor
    :return: the run
    """
    env = case.vector_environment()
    try:
        model = algorithm(case.policy, env, **{**DEFAULTS, **case.settings, **settings})
        return continued(model, *(int(n_rollouts * model.n_steps * case.n_envs) for n_rollouts in case.calls))
    finally:
        env.close()


def continued(model: OnPolicyAlgorithm, *budgets: int) -> Run:
    """Train a model on, as far as the budgets say, from its own count of steps.

    :param model: to train
    :param budgets: environment steps of each call of ``learn``
    :return: the run
    """
    recorder = LogRecorder()
    model.set_logger(Logger(None, [recorder]))
    for budget in budgets:
        model.learn(budget, reset_num_timesteps=False)
    # The last update is logged after the last dump.
    model.logger.dump(step=model.num_timesteps)
    return Run(model, record_of(model, recorder))


def record_of(model: OnPolicyAlgorithm, recorder: LogRecorder) -> dict[str, Any]:
    """Everything of a run that must not differ, random generators included."""
    record = {
        "policy": model.policy.state_dict(),
        "optimizer": model.policy.optimizer.state_dict(),
        "num_timesteps": model.num_timesteps,
        "n_updates": model._n_updates,
        "last_obs": model._last_obs,
        "last_episode_starts": model._last_episode_starts,
        "log": recorder.dumps,
        "numpy_generator": np.random.get_state()[1],
        "torch_generator": th.get_rng_state(),
    }
    normalizer = unwrap_vec_normalize(model.env) if model.env is not None else None
    if normalizer is not None:
        record["return_statistics"] = vars(normalizer.ret_rms)
        record["observation_statistics"] = vars(normalizer.obs_rms)
    # A copy, because the generators and the model go on.
    return frozen(record)


def frozen(value: Any) -> Any:
    """A copy of nested containers whose arrays and tensors are NumPy copies."""
    if isinstance(value, th.Tensor):
        return value.detach().cpu().numpy().copy()
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, Mapping):
        return {key: frozen(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [frozen(part) for part in value]
    return value


def differences(run: Run, other: Run) -> list[str]:
    """Where two runs differ by as much as a bit.

    :param run: one run
    :param other: the other
    :return: paths into ``record_of``, such as "policy/action_net.weight"; empty if the runs are the same
    """
    return _differences("", run.record, other.record)


def _differences(path: str, left: Any, right: Any) -> list[str]:
    if isinstance(left, dict) and isinstance(right, dict):
        unshared = [f"{path}{key} on one side only" for key in left.keys() ^ right.keys()]
        shared = [_differences(f"{path}{key}/", left[key], right[key]) for key in left if key in right]
        return unshared + [entry for entries in shared for entry in entries]
    if isinstance(left, list) and isinstance(right, list):
        return _differences(path, dict(enumerate(left)), dict(enumerate(right)))
    return [] if _same_bits(left, right) else [f"{path.rstrip('/')}: {left!r} is not {right!r}"]


def _same_bits(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()
    if isinstance(left, (float, np.number)) and isinstance(right, (float, np.number)):
        # Logs hold Python's and NumPy's numbers; the wider type holds the narrower exactly. NaN equals NaN.
        return np.float64(left).tobytes() == np.float64(right).tobytes()
    return bool(left == right)


def random_state() -> tuple[Any, ...]:
    """The state of the generators that training draws from, for ``restore_random_state``."""
    return random.getstate(), np.random.get_state(), th.get_rng_state()


def restore_random_state(state: tuple[Any, ...]) -> None:
    """Let the generators draw again what they drew after ``random_state``."""
    random.setstate(state[0])
    np.random.set_state(state[1])
    th.set_rng_state(state[2])
