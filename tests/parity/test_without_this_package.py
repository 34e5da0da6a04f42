"""A file saved here needs nothing of this package, on a machine that never had it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import tests
from sb3_ppo_from_scratch import PPO
from tests.parity.comparison import Case, trained_ours

# None in sys.modules is how Python spells "cannot be imported".
STRANGER = """
import sys
sys.modules["sb3_ppo_from_scratch"] = None
import numpy as np
import torch as th
th.set_num_threads(1)
from stable_baselines3 import PPO
from tests.environments import vector_environment

env = vector_environment(2, observation="dict_of_vectors")
model = PPO.load(sys.argv[1], env, device="cpu")
model.learn(2 * model.n_steps * model.n_envs, reset_num_timesteps=False)
env.seed(7)
actions, _ = model.predict(env.reset(), deterministic=True)
np.savez(sys.argv[2], actions=actions, **{k: v.numpy() for k, v in model.policy.state_dict().items()})
"""


def test_stock_loads_and_trains_our_zip_where_this_package_cannot_be_imported(tmp_path: Path) -> None:
    case = Case({"observation": "dict_of_vectors"}, 2, "MultiInputPolicy")
    path, outcome = tmp_path / "model.zip", tmp_path / "outcome.npz"
    trained_ours(case).model.save(path)
    # torch would otherwise load the package's entry point, and complain that it cannot.
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(tests.__path__[0]).parent),
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    }
    subprocess.run([sys.executable, "-c", STRANGER, str(path), str(outcome)], cwd=tmp_path, env=environment, check=True)

    env = case.vector_environment()
    ours = PPO.load(path, env, device="cpu", engine="reference")
    ours.learn(2 * ours.n_steps * ours.n_envs, reset_num_timesteps=False)
    env.seed(7)
    expected = {
        "actions": ours.predict(env.reset(), deterministic=True)[0],
        **{name: tensor.numpy() for name, tensor in ours.policy.state_dict().items()},
    }
    with np.load(outcome) as found:
        assert sorted(found) == sorted(expected)
        unequal = [name for name in found if found[name].tobytes() != expected[name].tobytes()]
    assert unequal == []
