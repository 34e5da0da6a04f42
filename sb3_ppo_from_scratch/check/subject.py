"""What is examined: an environment as it is trained on, and a model, loaded or new.

Owns their construction and the errors of the command line; must not know what is measured.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium import spaces
from stable_baselines3.common.env_util import make_atari_env, make_vec_env
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.vec_env import VecEnv, VecFrameStack, VecNormalize

from sb3_ppo_from_scratch.algorithm import PPO

# Of a new model: enough for statistics, in seconds.
N_ENVS, N_STEPS = 8, 128


class UnusableError(ValueError):
    """An argument of the command line that leads nowhere; the text names it and the remedy."""


def environment(env_id: str, n_envs: int, seed: int, statistics: Path | None) -> VecEnv:
    """The environments as rl_zoo3 would make them: Atari games behind SB3's wrappers, four frames stacked.

    :param env_id: registered with Gymnasium, or "module:id"
    :param n_envs: E
    :param seed: of the first; each further one counts up
    :param statistics: saved by ``VecNormalize``, applied as they are; None for none
    :return: E environments
    :raises UnusableError: if the id or the file does not exist
    """
    with suppress(ImportError):
        gym.register_envs(import_module("ale_py"))
    try:
        is_atari = "AtariEnv" in str(gym.spec(env_id).entry_point)
        env: VecEnv = (make_atari_env if is_atari else make_vec_env)(env_id, n_envs, seed)
    except (gym.error.Error, ModuleNotFoundError) as error:
        raise UnusableError(
            f"--env {env_id} cannot be made ({error}); give a registered id, or module:id to import one."
        ) from error
    if is_atari:
        env = VecFrameStack(env, n_stack=4)
    if statistics is not None:
        if not statistics.is_file():
            raise UnusableError(f"--normalize {statistics} is no file; give what VecNormalize.save() wrote.")
        env = VecNormalize.load(str(statistics), env)
        env.training = False
    return env


def saved_n_envs(path: Path) -> int:
    """How many environments a saved model was trained on.

    :param path: of a zip
    :return: E
    :raises UnusableError: if there is no model at this path
    """
    return _loaded(path).n_envs


def subject(path: Path | None, env: VecEnv, n_steps: int | None, seed: int) -> PPO:
    """The model to examine, bound to its environments.

    :param path: of a zip that PPO saved, ours or stock SB3's; None for a new model
    :param env: E environments
    :param n_steps: T; None for the saved model's own, or 128 for a new one
    :param seed: of actions, minibatches and a new model's weights
    :return: the model
    :raises UnusableError: if the model does not fit the environments
    """
    if path is not None:
        model = _loaded(path, env=env, **({} if n_steps is None else {"n_steps": n_steps}))
        model.set_random_seed(seed)
        return model
    n_steps = n_steps or N_STEPS
    try:
        batch_size = max(2, min(64, n_steps * env.num_envs))
        return PPO(_policy_alias(env.observation_space), env, n_steps=n_steps, batch_size=batch_size, seed=seed)
    except ValueError as error:
        raise UnusableError(f"PPO cannot be trained on --env: {error}") from error


def _loaded(path: Path, **arguments: Any) -> PPO:
    if not path.is_file():
        raise UnusableError(f"--model {path} is no file; give the zip that save() wrote.")
    try:
        return PPO.load(path, **arguments)
    except ValueError as error:
        raise UnusableError(
            f"--model {path} does not fit --env ({error}); give the environment that it was trained on, and "
            "--normalize if that was normalised."
        ) from error


def _policy_alias(space: spaces.Space[Any]) -> str:
    if isinstance(space, spaces.Dict):
        return "MultiInputPolicy"
    return "CnnPolicy" if is_image_space(space) else "MlpPolicy"
