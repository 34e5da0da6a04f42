"""Owns the Optuna search space of PPO: how a trial is sampled, and how its parameters are read back.
Must not know rl_zoo3, studies or training; it only fills the signatures that rl_zoo3 calls.

The ranges never depend on the trial: Optuna's multivariate TPE would otherwise drop the parameter from
its joint model. What depends on other parameters is settled in the conversion.
"""

from typing import Any

import optuna
from torch import nn

NET_ARCHS = {"tiny": [64], "small": [64, 64], "medium": [256, 256]}
ACTIVATION_FNS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}


def sample_ppo_params(
    trial: optuna.Trial, n_actions: int, n_envs: int, additional_args: dict[str, Any]
) -> dict[str, Any]:
    """Sample constructor arguments of PPO.

    :param trial: the trial that is asked
    :param n_actions: not used: the space is the same for every environment
    :param n_envs: environments that collect one rollout; kept in the trial, because the minibatches
        that fit a rollout depend on it and only the trial's parameters are there when it is read back
    :param additional_args: not used: meant for off-policy algorithms
    """
    trial.suggest_int("n_envs", n_envs, n_envs)
    trial.suggest_int("n_steps_pow", 5, 12)  # 32 to 4096
    trial.suggest_int("batch_size_pow", 5, 11)  # 32 to 2048, where the rollout is large enough
    # Horizons of 10 to 10000 steps, and the same question for the advantage; both matter by ratio.
    trial.suggest_float("one_minus_gamma", 1e-4, 0.1, log=True)
    trial.suggest_float("one_minus_gae_lambda", 1e-3, 0.3, log=True)
    trial.suggest_float("learning_rate", 1e-5, 3e-3, log=True)
    trial.suggest_float("ent_coef", 1e-8, 0.1, log=True)
    trial.suggest_float("clip_range", 0.1, 0.4)
    trial.suggest_int("n_epochs", 1, 20, log=True)
    trial.suggest_float("max_grad_norm", 0.3, 5.0, log=True)
    trial.suggest_categorical("net_arch", list(NET_ARCHS))
    trial.suggest_categorical("activation_fn", list(ACTIVATION_FNS))

    hyperparams = convert_ppo_params(trial.params)
    for name in ("n_steps", "batch_size", "gamma", "gae_lambda"):
        trial.set_user_attr(name, hyperparams[name])
    return hyperparams


def convert_ppo_params(params: dict[str, Any]) -> dict[str, Any]:
    """Return the constructor arguments that the parameters of a trial stand for.

    :param params: `trial.params` of a trial that `sample_ppo_params` has sampled, running or finished
    """
    n_steps = 2 ** params["n_steps_pow"]
    layers = NET_ARCHS[params["net_arch"]]
    return {
        "n_steps": n_steps,
        "batch_size": fitting_batch_size(2 ** params["batch_size_pow"], n_steps * params["n_envs"]),
        "gamma": 1 - params["one_minus_gamma"],
        "gae_lambda": 1 - params["one_minus_gae_lambda"],
        "learning_rate": params["learning_rate"],
        "ent_coef": params["ent_coef"],
        "clip_range": params["clip_range"],
        "n_epochs": params["n_epochs"],
        "max_grad_norm": params["max_grad_norm"],
        "policy_kwargs": {
            "net_arch": {"pi": list(layers), "vf": list(layers)},
            "activation_fn": ACTIVATION_FNS[params["activation_fn"]],
        },
    }


def fitting_batch_size(batch_size: int, rollout_size: int) -> int:
    """Return the largest power of two, at most `batch_size`, that divides the rollout without a rest.

    :param batch_size: a power of two
    :param rollout_size: n_steps · n_envs
    """
    # A number's lowest set bit is the largest power of two that divides it.
    return min(batch_size, rollout_size & -rollout_size)
