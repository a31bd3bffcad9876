"""A pool of processes of our own that decode logs: a task is a function with its arguments.

A worker is a program without a screen. It runs at a lower priority than other programs and outside
the terminal's group, so that Ctrl+C does not reach it, and ends with its pipe, on Linux also with
the thread that started it, whatever ended the app. multiprocessing would look for modules in the
current directory first, which may hold anything, and leave a process behind that tracks others.
"""

from __future__ import annotations

import copyreg
import os
import pickle
import signal
import sys
from concurrent.futures import Future
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any, cast

from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import Popen

_NICE = 10
"""How much lower the priority of a worker is than that of other programs and of the app."""
_PATIENCE = 1.0
"""Seconds that the end of a worker is waited for."""
_ON_PARENTS_DEATH = 1
"""PR_SET_PDEATHSIG of prctl(2)."""
_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from verl_tui.sources.pool import work; work()"
)
"""Program of a worker. It looks for modules where we do, never in the current directory."""

# Formats are modules, and sources know theirs.
copyreg.pickle(ModuleType, lambda module: (import_module, (module.__name__,)))


class Pool:
    """Workers, and a thread for each that waits for its answers."""

    def __init__(self, workers: int) -> None:
        """Begin without any; each starts when there is more to do than those before can.

        Args:
            workers: How many there may be.
        """
        self._tasks: SimpleQueue[tuple[Future[Any], bytes] | None] = SimpleQueue()
        self._open: list[Future[Any]] = []
        """Tasks that may not have been done."""
        self._processes: list[Popen[bytes]] = []
        self._threads: list[Thread] = []
        self._most = workers

    def submit(self, call: Callable[..., object], *args: object) -> Future[Any]:
        """Return what a function of a module will return, called in a worker with copies of its
        arguments as they are now; its error where it raises, where the worker dies, or where one of
        them cannot be copied.
        """
        future: Future[Any] = Future()
        try:
            self._tasks.put((future, pickle.dumps((call, args))))
        except Exception as error:  # noqa: BLE001 - any object may refuse, with any error
            future.set_exception(error)
        self._open = [one for one in (*self._open, future) if not one.done()]
        if len(self._threads) < min(len(self._open), self._most):
            thread = Thread(target=self._serve, name="pool", daemon=True)
            self._threads.append(thread)
            thread.start()
        return future

    def end(self) -> None:
        """End the workers: they have nothing that is not here as well."""
        for _ in self._threads:
            self._tasks.put(None)
        for process in self._processes:
            process.kill()
        for thread in self._threads:
            thread.join(_PATIENCE)

    def _serve(self) -> None:
        """Have one worker do a task after the other."""
        process = None
        while (task := self._tasks.get()) is not None:
            future, packed = task
            try:
                if process is None:
                    process = _started()
                    self._processes.append(process)
                future.set_result(_asked(process, packed))
            except Exception as error:  # noqa: BLE001 - whoever waits for the answer does without
                future.set_exception(error)
        if process is not None:
            with suppress(BrokenPipeError), process:
                process.kill()


def _started() -> Popen[bytes]:
    """Start a worker.

    Raises:
        OSError: It cannot be started.
    """
    import subprocess  # 10 ms, for large logs only

    search_path = [*filter(None, sys.path), str(Path(__file__).parents[2])]
    return subprocess.Popen(  # noqa: S603 - this Python, and words of ours
        [*_python(), "-c", _PROGRAM, *search_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _python() -> list[str]:
    """Return how to run a program as we are run, and with as little before it as possible."""
    written = ["-B"] if sys.dont_write_bytecode else []
    return [sys.executable, "-I", "-S", "-X", f"utf8={sys.flags.utf8_mode}", *written]


def _asked(process: Popen[bytes], task: bytes) -> object:
    """Return a worker's answer.

    Raises:
        Exception: It raised an error, or it has ended.
    """
    pickle.dump(task, cast("IO[bytes]", process.stdin))
    cast("IO[bytes]", process.stdin).flush()
    # From a process of our own, over a pipe that nobody else has.
    done, answer = pickle.load(cast("IO[bytes]", process.stdout))  # noqa: S301
    if not done:
        raise RuntimeError(answer)
    return answer


def work() -> None:
    """Be a worker: do what comes over standard input, and answer."""
    os.nice(_NICE)
    _end_with_the_app()
    with suppress(BrokenPipeError, EOFError):  # the app has ended, or needs no more
        while True:
            # From the app that has started this process, over a pipe that nobody else has.
            answer = _answer(pickle.load(sys.stdin.buffer))  # noqa: S301
            sys.stdout.buffer.write(answer)
            sys.stdout.buffer.flush()
    os._exit(0)  # without another attempt to write


def _end_with_the_app() -> None:
    """Have Linux end this process with the thread that started it. A closed pipe ends it, too, but
    not while it waits for a file system that does not answer.
    """
    if sys.platform == "linux":
        import ctypes  # 5 ms, in workers only

        ctypes.CDLL(None).prctl(_ON_PARENTS_DEATH, signal.SIGKILL)


def _answer(task: bytes) -> bytes:
    """Return what a task returns, or why it does not, packed."""
    try:
        call, args = pickle.loads(task)  # noqa: S301 - see above
        return pickle.dumps((True, call(*args)))
    except Exception as error:  # noqa: BLE001 - the app does it itself, and says what is wrong
        return pickle.dumps((False, one_line(f"{type(error).__name__}: {error}", 200)))
