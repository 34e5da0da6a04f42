"""Vector environments for every side, from a name.

Owns their construction, wrapped as an algorithm sees them; must not know any algorithm.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
from stable_baselines3.common.env_util import make_atari_env, make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv, VecFrameStack, VecTransposeImage

_STOCK: dict[str, type[DummyVecEnv] | type[SubprocVecEnv]] = {"dummy": DummyVecEnv, "subproc": SubprocVecEnv}


def make_environments(vec_env: str, env_id: str, n_envs: int, seed: int) -> VecEnv:
    """Environments with episode statistics; Atari games with the usual wrappers and 4 stacked frames.

    :param vec_env: "dummy", "subproc", or "native", which only Atari games have
    :param env_id: of a registered environment
    :param n_envs: how many
    :param seed: of the first; the others count on from it
    :return: not yet reset; images are channels-first
    """
    if vec_env == "native":
        from sb3_ppo_from_scratch.envs import AtariVecEnv

        return AtariVecEnv(env_id, n_envs=n_envs, seed=seed)
    if "NoFrameskip" not in env_id:
        return make_vec_env(env_id, n_envs=n_envs, seed=seed, vec_env_cls=_STOCK[vec_env])
    game = partial(make_game, env_id)
    frames = make_atari_env(game, n_envs=n_envs, seed=seed, vec_env_cls=_STOCK[vec_env])
    return VecTransposeImage(VecFrameStack(frames, n_stack=4))


def make_game(env_id: str) -> gym.Env[Any, Any]:
    """One Atari game without wrappers, also in a process that knows no Atari games yet.

    :param env_id: of a registered environment
    :return: as ``make_atari_env`` makes it from its id
    """
    import ale_py

    gym.register_envs(ale_py)
    return gym.make(env_id, render_mode="rgb_array")
