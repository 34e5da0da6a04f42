"""Atari games as one SB3 vector environment, played by several processes.

Owns SB3's ``VecEnv`` contract, frame stacks and monitor files; must not know any algorithm.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common import atari_wrappers as wrappers
from stable_baselines3.common.monitor import Monitor, ResultsWriter
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from sb3_ppo_from_scratch.envs.actions import checked_actions
from sb3_ppo_from_scratch.envs.atari_emulator import require_extra
from sb3_ppo_from_scratch.envs.frame_stack import FrameStack

if TYPE_CHECKING:
    from sb3_ppo_from_scratch.envs.atari_team import AtariTeam


class AtariVecEnv(VecEnv):
    """Atari games with SB3's preprocessing, played by several processes: 2.5 × ``DummyVecEnv`` on two cores.

    Takes the place of ``VecTransposeImage(VecFrameStack(make_atari_env(env_id, n_envs, seed), frame_stack))`` and
    returns the same observations, rewards, dones and infos in every bit, no-ops and sticky actions included, for the
    same seed and actions. ``infos[i]["episode"]`` counts the whole game as ``Monitor`` does inside ``AtariWrapper``:
    unclipped return, length in raw frames, no-ops included.

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
    :param n_processes: that play the games, this one included; None for one per available core
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
        n_processes: int | None = None,
    ) -> None:
        if n_processes is None:
            n_processes = _available_cores()
        for name, value in (("n_envs", n_envs), ("frame_stack", frame_stack), ("n_processes", n_processes)):
            if value < 1:
                raise ValueError(f"{name}={value} must be at least 1.")
        require_extra()
        from sb3_ppo_from_scratch.envs.atari_game import AtariSettings
        from sb3_ppo_from_scratch.envs.atari_group import GroupSettings
        from sb3_ppo_from_scratch.envs.atari_team import AtariTeam

        self._settings = AtariSettings(
            noop_max, frame_skip, screen_size, terminal_on_life_loss, clip_reward, action_repeat_probability
        )
        t_start = time.time()
        group_settings = GroupSettings(env_id, env_kwargs or {}, self._settings, t_start)
        self._team: AtariTeam = AtariTeam(group_settings, n_envs, n_processes)
        self._stack = FrameStack(n_envs, frame_stack, screen_size)
        self._ready = self._stepping = self._closed = False
        super().__init__(n_envs, self._stack.space, self._team.first_game.env.action_space)
        self.metadata = self._team.first_game.env.metadata
        self._writers: list[ResultsWriter] = []
        if monitor_dir is not None:
            header: dict[str, float | str] = {"t_start": t_start, "env_id": env_id}
            self._writers = [ResultsWriter(os.path.join(monitor_dir, str(i)), header) for i in range(n_envs)]
        if seed is not None:
            self.action_space.seed(seed)
        self.seed(seed)

    def reset(self) -> NDArray[np.uint8]:
        """Restart every game; where only a life was lost, SB3 goes on with the game, and so does this.

        :return: [n_envs, frame_stack, screen_size, screen_size] uint8, black but for the newest frame
        :raises RuntimeError: if closed
        """
        self._check_open()
        self._ready = self._stepping = False
        result = self._team.reset(self._seeds, [options or None for options in self._options])
        self.reset_infos = result.infos
        self._write_episodes(result.episodes)
        self._reset_seeds()
        self._reset_options()
        self._stack.clear()
        self._stack.push(result.frames)
        self._ready = True
        return self._stack.observations()

    def step_async(self, actions: Any) -> None:
        """Start a step.

        :param actions: [n_envs] whole numbers within the action space
        :raises TypeError: if the actions are not whole numbers
        :raises ValueError: if their number is wrong or one is out of range; nothing has happened then
        :raises RuntimeError: if closed, not yet reset, or already stepping
        """
        self._check_open()
        if self._stepping:
            raise RuntimeError("A step is under way: call step_wait() before the next step_async().")
        if not self._ready:
            raise RuntimeError("Call reset() first: there is no game to step.")
        checked = checked_actions(actions, self.action_space, self.num_envs)
        # Whatever breaks off the step, only a reset brings all games together again.
        self._ready, self._stepping = False, True
        self._team.begin_step(checked.tolist())

    def step_wait(self) -> VecEnvStepReturn:
        """Finish a step.

        :return: observations as from ``reset``, rewards [n_envs] float32, dones [n_envs] bool, one dict for each game
        :raises RuntimeError: if no step was started, after ``close``, or if a process is gone
        """
        self._check_open()
        if not self._stepping:
            raise RuntimeError("No step is under way: call step_async() first.")
        self._stepping = False
        result = self._team.finish_step()
        self._ready = True
        self._write_episodes(result.episodes)
        self._stack.push(result.frames)
        rewards, dones = np.array(result.rewards, np.float32), np.zeros(self.num_envs, bool)
        for i, (last_frame, info) in result.restarts.items():
            dones[i] = True
            result.infos[i]["terminal_observation"] = self._stack.ended(i, last_frame)
            self.reset_infos[i] = info
        if self._settings.clip_reward:
            np.sign(rewards, out=rewards)
        return self._stack.observations(), rewards, dones, result.infos

    def close(self) -> None:
        """End the games and their processes; closing again does nothing."""
        if not self._closed:
            self._closed = True
            self._team.close()
            for writer in self._writers:
                writer.close()

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """The games' screens in full size and colour.

        :return: [210, 160, 3] uint8 for each game; None each, with a warning, unless ``render_mode`` is "rgb_array"
        """
        if self.render_mode != "rgb_array":
            warnings.warn(f"The render mode is {self.render_mode}, images need `rgb_array`.", stacklevel=2)
            return [None] * self.num_envs
        return self.env_method("render")

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """The attribute of each game or, where it has none of that name, of its ``ale_py.AtariEnv``.

        What cannot be pickled, such as ``ale``, can be had only with ``n_processes=1``.
        """
        return [self._team.ask(i, "get_attr", attr_name) for i in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute that ``get_attr`` then finds; as with SB3's wrappers, the emulator's own stays as it is."""
        for i in self._get_indices(indices):
            self._team.ask(i, "set_attr", attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of each game's ``ale_py.AtariEnv``.

        :raises ValueError: for ``reset``, ``step`` and ``close``, behind the vector environment's back
        """
        if method_name in ("reset", "step", "close"):
            raise ValueError(f"Call {method_name}() of the vector environment, its games cannot do it one by one.")
        return [
            self._team.ask(i, "call", method_name, *method_args, **method_kwargs) for i in self._get_indices(indices)
        ]

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """Whether the games behave as if wrapped: true for ``Monitor`` and for what the arguments stand for."""
        standing_for = {
            Monitor: True,
            wrappers.AtariWrapper: True,
            wrappers.StickyActionEnv: self._settings.action_repeat_probability > 0,
            wrappers.NoopResetEnv: self._settings.noop_max > 0,
            wrappers.MaxAndSkipEnv: self._settings.frame_skip > 1,
            wrappers.EpisodicLifeEnv: self._settings.terminal_on_life_loss,
            wrappers.FireResetEnv: self._team.first_game.needs_fire,
            wrappers.WarpFrame: True,
            wrappers.ClipRewardEnv: self._settings.clip_reward,
        }
        wrapped = any(present and issubclass(kind, wrapper_class) for kind, present in standing_for.items())
        return [wrapped for _ in self._get_indices(indices)]

    def _write_episodes(self, episodes: list[tuple[int, dict[str, float]]]) -> None:
        if self._writers:
            for i, episode in episodes:
                self._writers[i].write_row(episode)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("This AtariVecEnv is closed; make a new one.")


def _available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
