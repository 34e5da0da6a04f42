"""Owns the setting `native_atari` of rl_zoo3 configurations: whether training games are played by AtariVecEnv.
Must not know how a game is played; evaluation always stays on SB3's own wrappers, so that scores compare.
"""

import functools
from typing import TYPE_CHECKING, Any

from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

if TYPE_CHECKING:
    from rl_zoo3.exp_manager import ExperimentManager

SETTING = "native_atari"
WRAPPER = "stable_baselines3.common.atari_wrappers.AtariWrapper"


def add_native_atari(manager: "type[ExperimentManager]", algorithm: str) -> None:
    """Let rl_zoo3 read the setting, and create the training environments that it asks for.

    :param manager: rl_zoo3's, changed in place, once
    :param algorithm: under which the setting has a meaning; for any other it is read and ignored
    """
    if hasattr(manager, SETTING):
        return
    manager.native_atari = False  # type: ignore[attr-defined]
    preprocess, create = manager._preprocess_hyperparams, manager.create_envs

    @functools.wraps(preprocess)
    def preprocess_with_setting(self: "ExperimentManager", hyperparams: dict[str, Any]) -> Any:
        wanted = hyperparams.pop(SETTING, False)
        objection = _objection(self, hyperparams) if wanted and self.algo == algorithm else None
        if objection is not None:
            print(f"{SETTING} is set, but {objection}: training on SB3's own wrappers")
        self.native_atari = wanted and self.algo == algorithm and objection is None  # type: ignore[attr-defined]
        return preprocess(self, hyperparams)

    @functools.wraps(create)
    def create_native_envs(
        self: "ExperimentManager", n_envs: int, eval_env: bool = False, no_log: bool = False
    ) -> VecEnv:
        if eval_env or not self.native_atari:  # type: ignore[attr-defined]
            return create(self, n_envs, eval_env, no_log)
        return _native_envs(self, n_envs, no_log)

    manager._preprocess_hyperparams = preprocess_with_setting  # type: ignore[method-assign]
    manager.create_envs = create_native_envs  # type: ignore[method-assign]


def _objection(manager: "ExperimentManager", hyperparams: dict[str, Any]) -> str | None:
    if not manager.is_atari(manager.env_name.gym_id):
        return f"{manager.env_name.gym_id} is no Atari game"
    if "NoFrameskip" not in manager.env_name.gym_id:
        return f"{manager.env_name.gym_id} skips frames by itself"
    if manager.vec_env_class is not DummyVecEnv:
        return "another vectorized environment was asked for"
    if hyperparams.get("env_wrapper") not in (WRAPPER, [WRAPPER]):
        return "env_wrapper is not AtariWrapper alone"
    for name in ("vec_env_wrapper", "normalize", "monitor_kwargs"):
        if hyperparams.get(name):
            return f"{name} is set"
    return None


def _native_envs(manager: "ExperimentManager", n_envs: int, no_log: bool) -> VecEnv:
    from sb3_ppo_from_scratch.envs import AtariVecEnv

    n_frames: int = getattr(manager, "frame_stack") or 1  # noqa: B009 (rl_zoo3 declares it as None)
    if manager.verbose > 0:
        print(f"Playing {n_envs} games natively, with a stack of {n_frames} frames")
    return AtariVecEnv(
        manager.env_name.gym_id,
        n_envs,
        manager.seed,
        frame_stack=n_frames,
        env_kwargs=manager.env_kwargs,
        monitor_dir=None if no_log else manager.save_path,
    )
