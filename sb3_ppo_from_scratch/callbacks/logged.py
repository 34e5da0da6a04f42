"""What an algorithm has logged of its latest update, whenever it dumps.

Owns the reading of SB3's logger; must not know what the values mean.
"""

from __future__ import annotations

from typing import Any

from stable_baselines3.common.logger import KVWriter, Logger


class LatestValues(KVWriter):
    """An output of the logger that remembers the last row, so that values survive a dump.

    SB3 dumps before the update, whose values then stay in the logger until the next dump; with ``log_after_train``, and
    in other algorithms, they are gone before a callback can see them.
    """

    def __init__(self) -> None:
        self._row: dict[str, Any] = {}

    def attach(self, logger: Logger) -> None:
        """Read along from now on.

        :param logger: of the model
        """
        if self not in logger.output_formats:
            logger.output_formats.append(self)

    def detach(self, logger: Logger) -> None:
        """Stop reading along.

        :param logger: of the model
        """
        if self in logger.output_formats:
            logger.output_formats.remove(self)

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        """Remember a row that is being dumped."""
        self._row = dict(key_values)

    def take(self, logger: Logger) -> dict[str, Any]:
        """Everything logged since the last call: what is waiting to be dumped, over what has been dumped.

        :param logger: of the model
        :return: by key
        """
        values = {**self._row, **logger.name_to_value}
        self._row = {}
        return values

    def close(self) -> None:
        """Nothing is open."""
