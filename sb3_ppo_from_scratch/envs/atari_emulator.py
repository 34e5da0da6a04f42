"""Makes the Atari emulator of a Gymnasium id, and refuses what SB3's preprocessing could not be put on.

Owns the optional dependencies and their error messages; knows no rewards, lives or observations.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import gymnasium as gym


def require_extra() -> None:
    """Check that what Atari games need is installed.

    :raises ImportError: naming the extra to install, if ``ale_py`` or OpenCV is missing
    """
    for module in ("ale_py", "cv2"):
        try:
            import_module(module)
        except ImportError as error:
            raise ImportError(
                f"AtariVecEnv needs {module}, which is not installed: pip install 'sb3_ppo_from_scratch[atari]'"
            ) from error


def make_emulator(env_id: str, env_kwargs: dict[str, Any]) -> Any:
    """The bare ``ale_py.AtariEnv`` of an id, as SB3's ``make_atari_env`` would make and then wrap it.

    :param env_id: of an Atari game
    :param env_kwargs: for ``gymnasium.make``; ``render_mode`` is "rgb_array" unless given
    :return: ``ale_py.AtariEnv`` with RGB observations and a frame skip of 1
    :raises ValueError: if it is none, naming what to pass instead
    """
    import ale_py

    gym.register_envs(ale_py)
    env = gym.make(env_id, **{"render_mode": "rgb_array", **env_kwargs})
    if not isinstance(env.unwrapped, ale_py.AtariEnv):
        env.close()
        raise ValueError(f"{env_id} is not an Atari game: use make_vec_env() of stable_baselines3 for it.")
    remedy = _remedy(env.spec)
    if remedy is not None:
        env.close()
        raise ValueError(f"AtariVecEnv cannot stand in for {env_id} with these env_kwargs: {remedy}")
    return env.unwrapped


def _remedy(spec: Any) -> str | None:
    given = spec.kwargs
    if given.get("frameskip", 4) != 1:
        return "the emulator must not skip frames itself; use a NoFrameskip-v4 id, or pass env_kwargs={'frameskip': 1}."
    if given.get("obs_type", "rgb") != "rgb" or given.get("sound_obs", False):
        return "only pictures in RGB can be preprocessed; leave obs_type at 'rgb' and sound_obs at False."
    if given.get("continuous", False):
        return "only discrete actions are supported; leave continuous at False, or use make_atari_env()."
    if given.get("render_mode") == "human":
        return "leave render_mode at 'rgb_array'; render('human') shows its pictures in a window."
    if spec.max_episode_steps is not None:
        return "limit episodes by env_kwargs={'max_num_frames_per_episode': n}, not by max_episode_steps."
    if spec.additional_wrappers:
        return "it brings wrappers of its own; use make_atari_env() of stable_baselines3."
    return None
