"""How fast this machine multiplies matrices: what no implementation of the same arithmetic can beat.

Owns the measurement; must not know what is compared with it.
"""

from __future__ import annotations

import time

import torch as th

_SIZE = 2048
_SECONDS = 2.0


def matmul_flops(device: str, size: int = _SIZE, seconds: float = _SECONDS) -> dict[str, float]:
    """Floating-point operations per second of the best of many square matrix multiplications.

    :param device: where
    :param size: rows and columns
    :param seconds: to try for, for each precision
    :return: by precision, "fp32" and "bf16"; a multiply-add counts as two
    """
    return {
        "fp32": _best(th.float32, device, size, seconds),
        "bf16": _best(th.bfloat16, device, size, seconds),
    }


def _best(dtype: th.dtype, device: str, size: int, seconds: float) -> float:
    left, right = (th.rand(size, size, device=device).to(dtype) for _ in range(2))
    product = left @ right  # the first call also chooses the kernel
    end, shortest = time.perf_counter() + seconds, float("inf")
    while shortest == float("inf") or time.perf_counter() < end:
        _wait_for(device)
        start = time.perf_counter()
        th.mm(left, right, out=product)
        _wait_for(device)
        shortest = min(shortest, time.perf_counter() - start)
    return 2.0 * size**3 / shortest


def _wait_for(device: str) -> None:
    if device.startswith("cuda"):
        th.cuda.synchronize()
