"""Atari games as one SB3 vector environment, stepped by several threads in one process.

Owns the games' creation, their frame stacks and SB3's ``VecEnv`` contract; must not know any algorithm.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common import atari_wrappers as wrappers
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from sb3_ppo_from_scratch.envs.actions import checked_actions
from sb3_ppo_from_scratch.envs.atari_emulator import make_emulator, require_extra
from sb3_ppo_from_scratch.envs.crew import Crew

if TYPE_CHECKING:
    from sb3_ppo_from_scratch.envs.atari_game import AtariGame

# Each step needs the interpreter lock for about a tenth of its time: more threads would only wait for it.
_MOST_THREADS = 8


class AtariVecEnv(VecEnv):
    """Atari games with SB3's preprocessing, several times faster than ``DummyVecEnv``.

    Takes the place of ``VecTransposeImage(VecFrameStack(make_atari_env(env_id, n_envs, seed), frame_stack))`` and
    returns the same observations, rewards, dones and infos in every bit, no-ops and sticky actions included, for the
    same seed and actions. ``infos[i]["episode"]`` counts the whole game as ``Monitor`` does inside ``AtariWrapper``:
    unclipped return, length in raw frames, no-ops included.

    Faster because ale-py's emulators run in threads without the interpreter lock, colours are looked up in tables,
    and nothing is wrapped. (``ale_py.AtariVectorEnv`` is not used: it cannot step one game alone, which FIRE after a
    lost life needs, it greys before it takes the maximum, and it waits for ever after an action out of range.)

    Observations are [n_envs, frame_stack, screen_size, screen_size] uint8, oldest frame first, as policies see SB3's
    environments, so models move between both. Every array returned is the caller's to keep and change.

    :param env_id: a ``...NoFrameskip-v4`` id, or any other Atari id together with ``env_kwargs={"frameskip": 1}``
    :param n_envs: number of games, at least 1
    :param seed: game i is seeded with ``seed + i`` at the first reset; None for a seed drawn from NumPy
    :param noop_max: a new game starts with 1 ... noop_max idle frames; 0 for none
    :param frame_skip: raw frames per step; the observation is the maximum of the last two
    :param screen_size: width and height of the observation, pixels
    :param terminal_on_life_loss: whether a lost life ends the episode (the game goes on)
    :param clip_reward: whether rewards are reduced to their sign
    :param action_repeat_probability: of a raw frame repeating the last action, in [0, 1]
    :param frame_stack: frames per observation, at least 1
    :param env_kwargs: for ``gymnasium.make``, such as ``mode``, ``difficulty`` or ``max_num_frames_per_episode``
    :param monitor_dir: folder for the files ``<i>.monitor.csv``; None for no files
    :param n_threads: threads that step the games; None for one per available core, at most 8
    :raises ImportError: without ``ale_py`` or OpenCV
    :raises ValueError: for an argument out of range or an environment that these games cannot stand in for
    """

    def __init__(
        self,
        env_id: str,
        n_envs: int = 1,
        seed: int | None = None,
        *,
        noop_max: int = 30,
        frame_skip: int = 4,
        screen_size: int = 84,
        terminal_on_life_loss: bool = True,
        clip_reward: bool = True,
        action_repeat_probability: float = 0.0,
        frame_stack: int = 4,
        env_kwargs: dict[str, Any] | None = None,
        monitor_dir: str | None = None,
        n_threads: int | None = None,
    ) -> None:
        if n_threads is None:
            n_threads = min(_available_cores(), _MOST_THREADS)
        for name, value in (("n_envs", n_envs), ("frame_stack", frame_stack), ("n_threads", n_threads)):
            if value < 1:
                raise ValueError(f"{name}={value} must be at least 1.")
        require_extra()
        from sb3_ppo_from_scratch.envs.atari_game import AtariGame, AtariSettings
        from sb3_ppo_from_scratch.envs.atari_screen import Palette

        settings = AtariSettings(
            noop_max, frame_skip, screen_size, terminal_on_life_loss, clip_reward, action_repeat_probability
        )
        palette = Palette()
        self.games: list[AtariGame] = []
        for i in range(n_envs):
            monitor_file = None if monitor_dir is None else os.path.join(monitor_dir, str(i))
            self.games.append(AtariGame(make_emulator(env_id, env_kwargs or {}), settings, palette, monitor_file))
        self._clip_reward = clip_reward
        self._stack: NDArray[np.uint8] = np.zeros((n_envs, frame_stack, screen_size, screen_size), np.uint8)
        self._crew = Crew(min(n_envs, n_threads))
        self._closed = self._ready = False
        super().__init__(n_envs, spaces.Box(0, 255, self._stack.shape[1:], np.uint8), self.games[0].env.action_space)
        self.metadata = self.games[0].env.metadata
        if seed is not None:
            self.action_space.seed(seed)
        self.seed(seed)

    def reset(self) -> NDArray[np.uint8]:  # noqa: D102
        self._check_open()
        self._crew.finish()
        self._stack[...] = 0
        for i, game in enumerate(self.games):
            self.reset_infos[i] = game.restart(self._seeds[i], self._options[i] or None)
            game.draw(self._stack[i, -1])
        self._reset_seeds()
        self._reset_options()
        self._ready = True
        return self._stack.copy()

    def step_async(self, actions: Any) -> None:
        """Start a step.

        :param actions: [n_envs] whole numbers within the action space
        :raises TypeError: if the actions are not whole numbers
        :raises ValueError: if their number is wrong or one is out of range; nothing has happened then
        :raises RuntimeError: if closed, not yet reset, or already stepping
        """
        self._check_open()
        if not self._ready:
            raise RuntimeError("Call reset() first: there is no game to step.")
        if self._crew.at_work:
            raise RuntimeError("A step is under way: call step_wait() before the next step_async().")
        self._actions = checked_actions(actions, self.action_space, self.num_envs).tolist()
        self._rewards = np.zeros(self.num_envs, np.float32)
        self._dones = np.zeros(self.num_envs, bool)
        self._infos: list[dict[str, Any]] = [{}] * self.num_envs
        self._crew.begin(self._play, self.num_envs)

    def step_wait(self) -> VecEnvStepReturn:
        """Finish a step.

        :return: observations [n_envs, frame_stack, size, size] uint8, rewards [n_envs] float32, dones [n_envs] bool,
            and one dict for each game
        :raises RuntimeError: if no step was started, or after ``close``
        """
        self._check_open()
        if not self._crew.at_work:
            raise RuntimeError("No step is under way: call step_async() first.")
        self._ready = False
        self._crew.finish()
        self._ready = True
        return self._stack.copy(), self._rewards, self._dones, self._infos

    def close(self) -> None:  # noqa: D102
        if self._closed:
            return
        self._closed = True
        try:
            self._crew.finish()
        finally:
            self._crew.close()
            for game in self.games:
                game.close()

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """The games' screens in full size and colour.

        :return: [210, 160, 3] uint8 for each game; None each, with a warning, unless ``render_mode`` is "rgb_array"
        """
        if self.render_mode != "rgb_array":
            warnings.warn(f"The render mode is {self.render_mode}, images need `rgb_array`.", stacklevel=2)
            return [None] * self.num_envs
        return [game.env.render() for game in self.games]

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """The attribute of each game or, where it has none of that name, of its ``ale_py.AtariEnv``."""
        return [_attribute(self.games[i], attr_name) for i in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute that ``get_attr`` then finds; as with SB3's wrappers, the emulator's own stays as it is."""
        for i in self._get_indices(indices):
            setattr(self.games[i], attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of each game's ``ale_py.AtariEnv``.

        :raises ValueError: for ``reset``, ``step`` and ``close``, behind the vector environment's back
        """
        if method_name in ("reset", "step", "close"):
            raise ValueError(f"Call {method_name}() of the vector environment, its games cannot do it one by one.")
        methods = [_attribute(self.games[i], method_name) for i in self._get_indices(indices)]
        return [method(*method_args, **method_kwargs) for method in methods]

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """Whether the games behave as if wrapped: true for ``Monitor`` and for what the arguments stand for."""
        settings = self.games[0].settings
        standing_for = {
            Monitor: True,
            wrappers.AtariWrapper: True,
            wrappers.StickyActionEnv: settings.action_repeat_probability > 0,
            wrappers.NoopResetEnv: settings.noop_max > 0,
            wrappers.MaxAndSkipEnv: settings.frame_skip > 1,
            wrappers.EpisodicLifeEnv: settings.terminal_on_life_loss,
            wrappers.FireResetEnv: self.games[0].needs_fire,
            wrappers.WarpFrame: True,
            wrappers.ClipRewardEnv: settings.clip_reward,
        }
        wrapped = any(present and issubclass(kind, wrapper_class) for kind, present in standing_for.items())
        return [wrapped for _ in self._get_indices(indices)]

    def _play(self, i: int) -> None:
        game, frames = self.games[i], self._stack[i]
        reward, terminated, truncated, info = game.play(self._actions[i])
        frames[:-1] = frames[1:]
        game.draw(frames[-1])
        info["TimeLimit.truncated"] = truncated and not terminated
        if terminated or truncated:
            info["terminal_observation"] = frames.copy()
            self.reset_infos[i] = game.restart()
            frames[:-1] = 0
            game.draw(frames[-1])
            self._dones[i] = True
        self._rewards[i] = np.sign(reward) if self._clip_reward else reward
        self._infos[i] = info

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("This AtariVecEnv is closed; make a new one.")


def _available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _attribute(game: AtariGame, name: str) -> Any:
    return getattr(game, name) if hasattr(game, name) else getattr(game.env, name)
