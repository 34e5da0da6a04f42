"""What the episodes of training were like at its end.

Owns which episodes count and how they ended; must not know the algorithm.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecNormalize, unwrap_vec_normalize

N_EPISODES = 100  # at the end of training, whose mean return is the score: as in the PPO paper
LANDING = 100.0  # LunarLander's reward for coming to rest


class Episode(NamedTuple):
    """How one episode went.

    :param score: raw return
    :param length: steps
    :param timed_out: ended by the time limit
    :param last_reward: raw
    """

    score: float
    length: int
    timed_out: bool
    last_reward: float


class Episodes:
    """The latest episodes."""

    def __init__(self) -> None:
        self._latest: deque[Episode] = deque(maxlen=N_EPISODES)
        self.n_all = 0

    def note(self, env: VecEnv, rewards: np.ndarray[Any, Any], infos: list[dict[str, Any]]) -> None:
        """Look for episodes that ended in a step.

        :param env: that was stepped
        :param rewards: [E] of the step, normalised if the environment does so
        :param infos: of the step
        """
        normalize = unwrap_vec_normalize(env)
        raw = rewards if normalize is None else normalize.get_original_reward()
        for reward, info in zip(raw, infos, strict=True):
            if "episode" in info and np.isfinite(info["episode"]["r"]):
                timed_out = bool(info.get("TimeLimit.truncated", False))
                of_monitor = info["episode"]
                self._latest.append(Episode(of_monitor["r"], of_monitor["l"], timed_out, float(reward)))
                self.n_all += 1

    def summary(self) -> dict[str, float]:
        """Means over the latest episodes.

        :raises RuntimeError: if none has ended
        """
        if not self._latest:
            raise RuntimeError("No episode ended: give more --steps.")
        scores = np.array([one.score for one in self._latest])
        return {
            "score": float(scores.mean()),
            "score_std": float(scores.std()),
            "length": float(np.mean([one.length for one in self._latest])),
            "timeouts": float(np.mean([one.timed_out for one in self._latest])),
            "landings": float(np.mean([one.last_reward == LANDING for one in self._latest])),
            "episodes": len(self._latest),
            "all_episodes": self.n_all,
        }


class EpisodesCallback(BaseCallback):
    """Notes episodes during training.

    :param episodes: to add to
    """

    def __init__(self, episodes: Episodes) -> None:
        super().__init__()
        self._episodes = episodes

    def _on_step(self) -> bool:
        self._episodes.note(self.training_env, self.locals["rewards"], self.locals["infos"])
        return True


def play_at_random(env: VecNormalize, n_steps: int, seed: int) -> Episodes:
    """Uniformly random actions until enough episodes have ended.

    :param env: to play
    :param n_steps: at most, over all environments
    :param seed: of the actions
    """
    episodes = Episodes()
    env.action_space.seed(seed)
    env.reset()
    for _ in range(0, n_steps, env.num_envs):
        actions = np.array([env.action_space.sample() for _ in range(env.num_envs)])
        _, rewards, _, infos = env.step(actions)
        episodes.note(env, rewards, infos)
        if episodes.n_all >= N_EPISODES:
            break
    return episodes
