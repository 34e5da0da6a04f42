"""An object that lives in a process of its own, called through pipes.

Owns the process, its start and its end; must not know what the object does, nor import SB3.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import traceback
import weakref
from collections.abc import Callable
from typing import Any

# A fresh interpreter, not a fork: no locks held by other threads, and no need for `if __name__ == "__main__"`.
_PROGRAM = "import sys, pickle; sys.path[:] = pickle.load(sys.stdin.buffer); from {module} import serve; serve()"


class Remote:
    """A proxy: ``begin`` a method call, ``finish`` it.

    The process ends when this object is closed or collected, and when its parent ends in whatever way, because then
    its pipe ends. Nothing here waits for ever: a process that dies breaks the pipe, which raises.

    :param make: picklable function or class, called in the process
    :param args: picklable, what it is called with
    """

    def __init__(self, make: Callable[..., Any], *args: Any) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM.format(module=__name__)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._finalizer = weakref.finalize(self, _end, self._process)
        self._owner = os.getpid()
        self._calling: str | None = None
        self._send(sys.path)
        self.begin(make.__name__, make, *args)

    def begin(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Start a call; one that is still under way is finished first, and what it returned or raised is lost.

        :param name: of the method
        :raises RuntimeError: if the process is gone, or belongs to another process than this one
        """
        if self._calling is not None:
            self._receive()
        self._send((name, args, kwargs))
        self._calling = name

    def finish(self) -> Any:
        """Wait for the call that was begun.

        :return: what the method returned
        :raises Exception: what the method raised
        :raises RuntimeError: if the process is gone
        """
        raised, value, where = self._receive()
        if raised:
            raise value from RuntimeError(where)
        return value

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """``begin`` and ``finish``."""
        self.begin(name, *args, **kwargs)
        return self.finish()

    def close(self) -> None:
        """End the process; a call under way is finished first."""
        if self._owner == os.getpid():
            self._finalizer()

    def _send(self, message: Any) -> None:
        if self._owner != os.getpid():
            raise RuntimeError("Only the process that made this environment can use it; make one in each process.")
        # Before anything is written, so that what cannot be pickled does not leave half a message behind.
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except BaseException as error:
            self._break_off(error)
            raise

    def _receive(self) -> tuple[bool, Any, str]:
        assert self._process.stdout is not None
        self._calling = None
        try:
            answer: tuple[bool, Any, str] = pickle.load(self._process.stdout)
        except BaseException as error:
            self._break_off(error)
            raise
        return answer

    def _break_off(self, error: BaseException) -> None:
        """After Ctrl-C, too: half a message has passed, and the next would begin in its middle."""
        self._process.kill()
        self.close()
        if isinstance(error, OSError | EOFError | ValueError | pickle.UnpicklingError):
            raise RuntimeError(
                f"The process of some games is gone (exit code {self._process.returncode}); make a new environment."
            ) from error


def serve() -> None:
    """What the process does: make the object, then answer calls until the pipe ends."""
    # Ctrl-C reaches every process of a terminal; this one ends with its parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    calls, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Whatever else prints must not end up among the answers.
    os.dup2(2, 1)
    served: Any = None
    while True:
        try:
            name, args, kwargs = pickle.load(calls)
        except (EOFError, OSError):
            return
        try:
            if served is None:
                served, value = args[0](*args[1:]), None
            else:
                value = getattr(served, name)(*args, **kwargs)
            answer = _pickled_value(name, value)
        except Exception as error:
            answer = _pickled_error(error)
        try:
            answers.write(answer)
            answers.flush()
        except OSError:
            return


def _pickled_value(name: str, value: Any) -> bytes:
    try:
        return pickle.dumps((False, value, ""), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        # Whatever pickle raised: an AttributeError would read as if there were no such attribute.
        raise TypeError(
            f"What {name} returned cannot leave its process (n_processes=1 keeps it here): {error}"
        ) from None


def _pickled_error(error: Exception) -> bytes:
    where = traceback.format_exc()
    try:
        answer = pickle.dumps((True, error, where), pickle.HIGHEST_PROTOCOL)
        pickle.loads(answer)
    except Exception:
        answer = pickle.dumps((True, RuntimeError(repr(error)), where), pickle.HIGHEST_PROTOCOL)
    return answer


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        try:
            if pipe is not None:
                pipe.close()
        except OSError:
            pass
    process.wait()
