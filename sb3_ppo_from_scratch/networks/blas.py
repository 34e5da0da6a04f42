"""Owns the number of threads that NumPy's matrix products use while they are small.
Must not know what is multiplied.
"""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType

from threadpoolctl import LibController, ThreadpoolController

# Multiplications in one product, above which a second thread is worth waking.
_LARGE = 2**23
# And those up to which OpenBLAS wakes none by itself (its interface/gemm.c and interface/gemv.c).
_SMALL_MATRIX, _SMALL_VECTOR = 2**18, 9216


class _OneThread:
    """A context in which NumPy's OpenBLAS computes in the calling thread alone; may be entered again and again."""

    def __init__(self, libraries: list[LibController]) -> None:
        self._libraries = libraries
        self._before: list[int] = []

    def __enter__(self) -> None:
        self._before = [library.num_threads for library in self._libraries]
        for library in self._libraries:
            library.set_num_threads(1)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for library, n_threads in zip(self._libraries, self._before, strict=True):
            library.set_num_threads(n_threads)


def threads_for(n_rows: int, n_weights: int) -> AbstractContextManager[None]:
    """A context with the number of BLAS threads that suits products of this size.

    OpenBLAS shares out even products of a few microseconds, and its threads and those of torch's OpenMP then wait for
    one another: on two cores an update of a small network took fifty times as long. Telling it so takes as long as
    such a product, so it is left alone where it needs no telling.

    :param n_rows: of the inputs
    :param n_weights: inputs × outputs of the largest layer
    :return: a context for one thread; for large and for tiny products one that changes nothing
    """
    tiny = _SMALL_VECTOR if n_rows == 1 else _SMALL_MATRIX
    return _OneThread(_openblas()) if tiny < n_rows * n_weights <= _LARGE else nullcontext()


@functools.cache
def _openblas() -> list[LibController]:
    return list(ThreadpoolController().select(internal_api="openblas").lib_controllers)
