"""How hypothesis runs the unit tests: the same examples on every machine, however slow it is."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
settings.load_profile("repeatable")
