"""What is examined: an environment as it is trained on, and a model, loaded or new.

Owns their construction and the errors of the command line; must not know what is measured.
"""

from __future__ import annotations

import pickle
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium import spaces
from stable_baselines3.common.env_util import make_atari_env, make_vec_env
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.save_util import load_from_zip_file
from stable_baselines3.common.vec_env import VecEnv, VecFrameStack, VecNormalize

from sb3_ppo_from_scratch.algorithm import PPO
from sb3_ppo_from_scratch.networks.recognition import is_evaluable

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
        env = _normalized(env, statistics)
    return env


def _normalized(env: VecEnv, statistics: Path) -> VecEnv:
    remedy = "give what VecNormalize.save() wrote for these environments"
    if not statistics.is_file():
        raise UnusableError(f"--normalize {statistics} is no file; {remedy}.")
    try:
        normalized = VecNormalize.load(str(statistics), env)
    # Whatever a file may hold, or do when it is unpickled.
    except (pickle.UnpicklingError, EOFError, ImportError, LookupError, AttributeError, TypeError, ValueError) as error:
        raise UnusableError(f"--normalize {statistics} cannot be used ({error}); {remedy}.") from error
    normalized.training = False
    return normalized


def saved_n_envs(path: Path) -> int:
    """How many environments a saved model was trained on.

    :param path: of a zip
    :return: E
    :raises UnusableError: if there is no model at this path
    """
    n_envs: int = _saved_data(path)["n_envs"]
    return n_envs


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
        return _loaded(path, env, seed, n_steps)
    n_steps = n_steps or N_STEPS
    try:
        batch_size = max(2, min(64, n_steps * env.num_envs))
        return PPO(_policy_alias(env.observation_space), env, n_steps=n_steps, batch_size=batch_size, seed=seed)
    except ValueError as error:
        raise UnusableError(f"PPO cannot be trained on --env: {error}") from error


def _loaded(path: Path, env: VecEnv, seed: int, n_steps: int | None) -> PPO:
    saved = _saved_data(path)
    n_steps = n_steps or saved["n_steps"]
    if n_steps * env.num_envs < 2:
        raise UnusableError(f"--n-steps {n_steps} with {env.num_envs} environment is one transition; raise either.")
    try:
        # Nothing is to appear in the folder where the model's own runs are logged.
        model = PPO.load(path, env=env, n_steps=n_steps, tensorboard_log=None, verbose=0)
    except ValueError as error:
        raise UnusableError(
            f"--model {path} does not fit --env ({error}); give the environment that it was trained on, and "
            "--normalize if that was normalised."
        ) from error
    model.set_random_seed(seed)
    return model


def _saved_data(path: Path) -> dict[str, Any]:
    try:
        data, _, _ = load_from_zip_file(path, device="cpu")
    except (OSError, ValueError) as error:
        raise UnusableError(f"--model {path} cannot be read ({error}); give the zip that save() wrote.") from error
    if data is None or "clip_range" not in data or not is_evaluable(data["policy_class"]):
        raise UnusableError(f"--model {path} was saved by another algorithm; give a model of PPO's, ours or stock's.")
    return data


def _policy_alias(space: spaces.Space[Any]) -> str:
    if isinstance(space, spaces.Dict):
        return "MultiInputPolicy"
    return "CnnPolicy" if is_image_space(space) else "MlpPolicy"
