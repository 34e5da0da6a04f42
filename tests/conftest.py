"""What every test of the project runs under."""

from __future__ import annotations

import pytest
import torch as th


@pytest.fixture(scope="session", autouse=True)
def _one_torch_thread() -> None:
    # Sums in another order give other bits, and the parity tests compare bits.
    th.set_num_threads(1)
