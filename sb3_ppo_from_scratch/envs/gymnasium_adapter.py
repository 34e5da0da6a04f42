"""Any vector environment of Gymnasium as an SB3 vector environment.

Owns the translation of autoreset modes, actions and infos; must not know any algorithm or any one environment.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from numpy.typing import NDArray
from stable_baselines3.common.env_util import is_wrapped
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv, VecMonitor
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn

from sb3_ppo_from_scratch.envs.actions import checked_actions
from sb3_ppo_from_scratch.envs.autoreset import reset_only, usable_autoreset_mode, wrappers_of
from sb3_ppo_from_scratch.envs.batches import chosen_rows, info_of, observation_of


def as_vec_env(env: VectorEnv[Any, Any, Any], *, monitor_wrapper: bool = True) -> VecEnv:
    """A vector environment of Gymnasium in the form that SB3's algorithms take.

    :param env: any ``gymnasium.vector.VectorEnv``, wrapped or not, in any autoreset mode that can be served exactly
    :param monitor_wrapper: whether to add SB3's ``VecMonitor`` where nothing counts episodes yet, as SB3 adds
        ``Monitor`` to single environments
    :return: a ``GymnasiumVecEnv``, in a ``VecMonitor`` where one was added
    :raises TypeError: if it is no ``gymnasium.vector.VectorEnv``
    :raises ValueError: if episodes' ends cannot be translated correctly, saying how to construct it instead
    """
    adapter = GymnasiumVecEnv(env)
    if monitor_wrapper and not any(adapter.env_is_wrapped(Monitor)):
        return VecMonitor(adapter)
    return adapter


class GymnasiumVecEnv(VecEnv):
    """One ``gymnasium.vector.VectorEnv`` behind SB3's ``VecEnv`` interface.

    Steps like ``DummyVecEnv``: at the end of an episode the observation is the next episode's first,
    ``infos[i]["terminal_observation"]`` has the last, and no fake transition reaches the learner. In SAME_STEP mode
    the environment does so itself; in NEXT_STEP and DISABLED mode the finished environments, and only those, are reset
    at once with ``options={"reset_mask": ...}``.

    ``infos[i]["episode"]`` is there if ``RecordEpisodeStatistics`` or SB3's ``Monitor`` wraps the environment.

    :param env: to adapt
    :raises TypeError: if it is no ``gymnasium.vector.VectorEnv``
    :raises ValueError: if episodes' ends cannot be translated correctly, saying how to construct it instead
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        if not isinstance(env, VectorEnv):
            raise TypeError(f"Expected a gymnasium.vector.VectorEnv, got {type(env).__name__}.")
        self.env = env
        self._same_step = usable_autoreset_mode(env) is AutoresetMode.SAME_STEP
        self._actions: Any = None
        self._ready = self._closed = False
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
        self.metadata = dict(env.metadata)

    def reset(self) -> VecEnvObs:
        """Reset every environment.

        :return: first observations, [n_envs, ...] for each part of the observation space
        :raises ValueError: if ``set_options`` gave different options to different environments
        :raises RuntimeError: if closed
        """
        self._check_open()
        options = self._options[0]
        if any(other != options for other in self._options):
            raise ValueError("A gymnasium.vector.VectorEnv takes the same reset options for all its environments.")
        seed = None if self._seeds[0] is None else int(self._seeds[0])
        observations, infos = self.env.reset(seed=seed, options=dict(options) or None)
        self.reset_infos = [info_of(infos, i) for i in range(self.num_envs)]
        self._reset_seeds()
        self._reset_options()
        self._actions, self._ready = None, True
        copied: VecEnvObs = deepcopy(observations)
        return copied

    def step_async(self, actions: Any) -> None:
        """Check and keep the actions; ``step_wait`` takes the step.

        :param actions: [n_envs, ...] array, or a sequence of ``n_envs`` actions
        :raises TypeError: if whole numbers are wanted and something else is given
        :raises ValueError: if their number or shape is wrong or one is out of range; nothing has happened then
        :raises RuntimeError: if closed or not yet reset
        """
        self._check_open()
        if not self._ready:
            raise RuntimeError("Call reset() first: there is no episode to step.")
        self._actions = checked_actions(actions, self.action_space, self.num_envs)

    def step_wait(self) -> VecEnvStepReturn:
        """Take the step.

        :return: observations, rewards [n_envs] float32, dones [n_envs] bool, and one dict for each environment
        :raises RuntimeError: if no step was started, or after ``close``
        """
        self._check_open()
        if self._actions is None:
            raise RuntimeError("No step is under way: call step_async() first.")
        actions, self._actions = self._actions, None
        observations, rewards, terminated, truncated, batch = self.env.step(actions)
        terminated, truncated = np.array(terminated, bool), np.array(truncated, bool)
        dones = terminated | truncated
        observations = deepcopy(observations)
        if self._same_step:
            infos = self._infos_around_reset(batch, dones)
        else:
            infos = [info_of(batch, i) for i in range(self.num_envs)]
            if dones.any():
                observations = self._reset_finished(observations, dones, infos)
        for i, info in enumerate(infos):
            info["TimeLimit.truncated"] = bool(truncated[i] and not terminated[i])
        return observations, np.array(rewards, np.float32), dones, infos

    def _infos_around_reset(self, batch: dict[str, Any], dones: NDArray[np.bool_]) -> list[dict[str, Any]]:
        """SAME_STEP: the batch tells of the new episode, ``final_*`` and the statistics of the one that ended."""
        infos = []
        for i in range(self.num_envs):
            info = info_of(batch, i)
            last_observation, last_info = info.pop("final_obs", None), info.pop("final_info", None)
            if dones[i]:
                episode = info.pop("episode", None)
                self.reset_infos[i] = info
                info = {} if last_info is None else dict(last_info)
                if episode is not None:
                    info["episode"] = episode
                if last_observation is None:
                    raise RuntimeError(f"{self.env} ended an episode without info['final_obs'], which SAME_STEP wants.")
                info["terminal_observation"] = deepcopy(last_observation)
            infos.append(info)
        return infos

    def _reset_finished(self, observations: Any, dones: NDArray[np.bool_], infos: list[dict[str, Any]]) -> Any:
        """NEXT_STEP and DISABLED: begin the finished environments' next episodes before anyone steps them."""
        first, batch = reset_only(self.env, dones)
        for i in np.flatnonzero(dones):
            infos[i]["terminal_observation"] = observation_of(observations, int(i))
            self.reset_infos[i] = info_of(batch, int(i))
        return chosen_rows(dones, first, observations)

    def close(self) -> None:  # noqa: D102
        if not self._closed:
            self._closed = True
            self.env.close()

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:  # noqa: D102
        if self.render_mode != "rgb_array":
            warnings.warn(f"The render mode is {self.render_mode}, images need `rgb_array`.", stacklevel=2)
            return [None] * self.num_envs
        images: Any = self.env.render()
        return [None] * self.num_envs if images is None else list(images)

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """The attribute of each environment, through its wrappers.

        :raises AttributeError: if an environment has none of that name, or the vector environment hides its parts
        """
        chosen = list(self._get_indices(indices))
        if attr_name == "render_mode":
            return [self.env.render_mode for _ in chosen]
        call = self._call(attr_name)
        values = call("get_wrapper_attr", attr_name)
        return [values[i] for i in chosen]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute on the outermost wrapper that has it.

        :raises AttributeError: if the vector environment hides its parts
        :raises ValueError: if only some environments are meant, and they live in other processes
        """
        self._of_each("set_wrapper_attr", indices, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of each environment, through its wrappers.

        :raises AttributeError: if the vector environment hides its parts
        :raises ValueError: for ``reset``, ``step`` and ``close``, behind the vector environment's back; or if only
            some environments are meant, and they live in other processes
        """
        if method_name in ("reset", "step", "close"):
            raise ValueError(f"Call {method_name}() of the vector environment, its parts cannot do it one by one.")
        self._call(method_name)
        return self._of_each(method_name, indices, *method_args, **method_kwargs)

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """Whether each environment is wrapped.

        ``RecordEpisodeStatistics`` counts as ``Monitor``, whose work it does; in other processes nothing else is seen.
        """
        chosen = list(self._get_indices(indices))
        parts = getattr(self.env.unwrapped, "envs", None)
        if parts is not None and any(is_wrapped(part, wrapper_class) for part in parts):
            return [is_wrapped(parts[i], wrapper_class) for i in chosen]
        counted = any(isinstance(wrapper, RecordEpisodeStatistics) for wrapper in wrappers_of(self.env))
        monitored = counted or (parts is None and self.has_attr("get_episode_rewards"))
        return [issubclass(Monitor, wrapper_class) and monitored for _ in chosen]

    def _call(self, name: str) -> Callable[..., Any]:
        call: Callable[..., Any] | None = getattr(self.env.unwrapped, "call", None)
        # Asked for first, because a worker that fails to find an attribute ends its process.
        if call is None or not all(call("has_wrapper_attr", name)):
            raise AttributeError(f"{self.env} offers no attribute {name!r} of its environments.")
        return call

    def _of_each(self, name: str, indices: VecEnvIndices, *args: Any, **kwargs: Any) -> list[Any]:
        chosen = list(self._get_indices(indices))
        parts = getattr(self.env.unwrapped, "envs", None)
        if parts is not None:
            return [parts[i].get_wrapper_attr(name)(*args, **kwargs) for i in chosen]
        if chosen != list(range(self.num_envs)):
            raise ValueError(f"Environments in other processes are reached all at once: leave out indices={chosen}.")
        return list(self._call(name)(name, *args, **kwargs))

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("This vector environment is closed; make a new one.")
