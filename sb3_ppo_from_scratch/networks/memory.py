"""Owns the advice to the C library to keep freed memory at hand from one minibatch to the next.
Must not know what the memory is for.
"""

from __future__ import annotations

import ctypes
import functools
import os

# <malloc.h> of the GNU C library.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT, _LARGEST = 2**29, 2**25
_USER_SETTINGS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES", "LD_PRELOAD")


@functools.cache
def keep_freed_memory() -> None:
    """Let the process keep up to 512 MB of freed memory instead of returning it to the system.

    A minibatch of images allocates and frees about 100 MB of activations. Returned and taken again, every page of it is
    zeroed anew, which costs a fifth of an update. Once a process; a user's own setting of the allocator is left alone,
    and other C libraries than GNU's are not touched.
    """
    if any(name in os.environ for name in _USER_SETTINGS):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not the GNU C library
        return
    mallopt(_M_MMAP_THRESHOLD, _LARGEST)
    mallopt(_M_TRIM_THRESHOLD, _KEPT)
