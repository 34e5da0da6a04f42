"""Claims about when NumPy's OpenBLAS is held to one thread, and that it is let go again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from threadpoolctl import LibController, ThreadpoolController

from sb3_ppo_from_scratch.networks.blas import threads_for


@pytest.fixture(name="library")
def with_two_threads() -> Iterator[LibController]:
    """NumPy's OpenBLAS, allowed two threads for the time of a test."""
    np.dot(np.ones((2, 2)), np.ones((2, 2)))
    libraries = ThreadpoolController().select(internal_api="openblas").lib_controllers
    before = [library.num_threads for library in libraries]
    for library in libraries:
        library.set_num_threads(2)
    yield libraries[0]
    for library, n_threads in zip(libraries, before, strict=True):
        library.set_num_threads(n_threads)


@pytest.mark.parametrize(
    "n_rows, n_weights, expected",
    [
        (256, 64 * 64, 1),  # a minibatch of a small network
        (8, 64 * 64, 2),  # eight environments: OpenBLAS wakes no thread by itself
        (1, 64 * 64, 2),  # one environment, likewise
        (1, 256 * 256, 1),  # a vector times a matrix is shared out much earlier
        (64, 64 * 64, 2),  # 2¹⁸ multiplications exactly
        (65, 64 * 64, 1),
        (256, 1024 * 1024, 2),  # worth a second thread
    ],
)
def test_products_between_tiny_and_large_are_computed_in_one_thread(
    library: LibController, n_rows: int, n_weights: int, expected: int
) -> None:
    with threads_for(n_rows, n_weights):
        assert library.num_threads == expected
    assert library.num_threads == 2


def test_an_error_lets_go_of_the_threads_too(library: LibController) -> None:
    with pytest.raises(ZeroDivisionError), threads_for(256, 64 * 64):
        raise ZeroDivisionError
    assert library.num_threads == 2
