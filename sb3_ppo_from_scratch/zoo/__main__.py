"""Owns `python -m sb3_ppo_from_scratch.zoo COMMAND ARGS`, the way into rl_zoo3 that depends on no hook.
Must not know the arguments of the commands: they go to rl_zoo3 as they are.
"""

import runpy
import sys

COMMANDS = {
    "train": "rl_zoo3.train",
    "enjoy": "rl_zoo3.enjoy",
    "record_video": "rl_zoo3.record_video",
    "record_training": "rl_zoo3.record_training",
    "benchmark": "rl_zoo3.benchmark",
    "load_from_hub": "rl_zoo3.load_from_hub",
    "push_to_hub": "rl_zoo3.push_to_hub",
    "plots.plot_train": "rl_zoo3.plots.plot_train",
    "plots.plot_from_file": "rl_zoo3.plots.plot_from_file",
    "plots.all_plots": "rl_zoo3.plots.all_plots",
}
USAGE = f"""usage: python -m sb3_ppo_from_scratch.zoo COMMAND ARGS
commands: {", ".join(COMMANDS)}
Runs rl_zoo3's module of that name, with --algo myppo registered; COMMAND --help lists its arguments."""


def main(arguments: list[str]) -> None:
    """Register PPO in rl_zoo3 as `myppo`, then run one of rl_zoo3's modules as if it had been called itself.

    :param arguments: the command's name, then what it is passed
    :raises SystemExit: without a command, or for one that does not exist
    """
    command, *passed_on = arguments or ["--help"]
    if command in ("-h", "--help"):
        print(USAGE)
        raise SystemExit(0 if arguments else 2)
    if command not in COMMANDS:
        raise SystemExit(f"{USAGE}\nerror: unknown command {command!r}")

    from sb3_ppo_from_scratch.zoo.registration import register

    register()
    sys.argv = [command, *passed_on]
    runpy.run_module(COMMANDS[command], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
