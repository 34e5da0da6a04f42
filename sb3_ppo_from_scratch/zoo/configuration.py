"""Owns the choice of the configuration file for an environment when the user named none.
Must not know how rl_zoo3 reads such a file, nor what its entries mean.
"""

from importlib import resources
from pathlib import Path

import yaml

OWN_CONFIGURATION = "sb3_ppo_from_scratch.hyperparams"


def own_configuration() -> Path:
    """Return the path of the myppo.yml shipped with the package."""
    return Path(str(resources.files(OWN_CONFIGURATION) / "myppo.yml"))


def default_configuration(env_id: str, is_atari: bool, zoo_configuration: Path) -> Path:
    """Return our configuration if it has an entry for the environment, else rl_zoo3's, and say so.

    :param env_id: as registered in Gymnasium
    :param is_atari: whether rl_zoo3 would use the entry `atari`
    :param zoo_configuration: the ppo.yml of the installed rl_zoo3, whose settings suit any PPO
    """
    own = own_configuration()
    entries = yaml.safe_load(own.read_text(encoding="utf-8"))
    if env_id in entries or (is_atari and "atari" in entries):
        return own
    print(f"myppo has no entry of its own for {env_id}: using rl_zoo3's {zoo_configuration.name}")
    return zoo_configuration
