"""A worker: a process of our own to which sources are sent, and which reads them and answers over a
pipe.

It is a program of its own without a screen. It runs at a lower priority than other programs and
outside the terminal's group, so that Ctrl+C does not reach it, and ends with its pipe, on Linux
also with the thread that started it, whatever ended the app. It reads ahead only as far as its pipe
holds: a slow consumer slows the reading down, and memory stays small.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from verl_tui.sources.packing import packed, unpacked
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence


_PIPE = 2**20
"""Bytes that a worker may be ahead, where the system allows it: the most that Linux does unasked
(pipe(7)).
"""
_NICE = 10
"""How much lower the priority of a worker is than that of other programs and of the app."""
_PATIENCE = 1.0
"""Seconds that the end of a worker is waited for."""
_ON_PARENTS_DEATH = 1
"""PR_SET_PDEATHSIG of prctl(2)."""
_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from verl_tui.sources.worker_process import work; work()"
)
"""Program of a worker. It looks for modules where we do, never in the current directory, which may
hold anything.
"""


class Traveller(Protocol):
    """What travels to a worker: a source, or a part of one."""

    def read(self) -> tuple[tuple[Any, ...], bool]:
        """Return what it gives in its turn, and whether it has more to give."""
        ...

    def status(self) -> Any:
        """Return how its source is doing."""
        ...


class WorkerAnswer(NamedTuple):
    """The batch of a traveller from one turn."""

    found: tuple[Any, ...]
    status: Any
    """How its source is doing."""
    home: Any
    """The traveller itself, once it has no more to give."""


class WorkerFailure(NamedTuple):
    """Why something cannot be read in a worker."""

    why: str


class WorkerProcess:
    """A worker process."""

    def __init__(self) -> None:
        """Start it.

        Raises:
            OSError: It cannot be started.
        """
        import subprocess  # 10 ms, for large logs only

        self._process = subprocess.Popen(  # noqa: S603 - this Python, and words of ours
            [*_python(), "-c", _PROGRAM, *_search_path()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pipesize=_PIPE,
        )
        self._answers: list[deque[WorkerAnswer | WorkerFailure]] = []
        """By traveller, what has come and has not been taken."""
        self._lost: WorkerFailure | None = None
        """Why nothing more is to come."""

    def send(self, travellers: Sequence[bytes]) -> None:
        """Send it travellers, which have been packed; those sent before have no more to give."""
        self._answers = [deque() for _ in travellers]
        pipe = cast("IO[bytes]", self._process.stdin)
        with suppress(OSError):  # it has ended: its answers say so
            pickle.dump(travellers, pipe)
            pipe.flush()

    def answer(self, number: int) -> WorkerAnswer | WorkerFailure:
        """Return what a traveller gives in its next turn."""
        waiting = self._answers[number]
        while not waiting:
            if self._lost is not None:
                return self._lost
            try:
                # From a process of our own, over a pipe that nobody else has.
                answers = cast("IO[bytes]", self._process.stdout)
                other, answer = pickle.load(answers)  # noqa: S301
            except Exception as error:  # noqa: BLE001 - it ended at any place, or sent nonsense
                self._lost = WorkerFailure(
                    f"its worker has ended: {type(error).__name__}"
                )
            else:
                self._answers[other].append(answer)
        return waiting.popleft()

    def end(self) -> None:
        """End it: it has nothing that is not here as well."""
        import subprocess

        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]


def work() -> None:
    """Be a worker: have what comes over standard input read, and answer."""
    os.nice(_NICE)
    _end_with_the_app()
    with suppress(BrokenPipeError, EOFError):  # the app has ended, or needs no more
        while True:
            # From the app that has started this process, over a pipe that nobody else has.
            _have_read(pickle.load(sys.stdin.buffer))  # noqa: S301
    os._exit(0)  # without another attempt to write


def _have_read(packed_travellers: Sequence[bytes]) -> None:
    """Have travellers read in turn until they have no more to give, and answer."""
    travellers: dict[int, bytes | Traveller] = dict(enumerate(packed_travellers))
    while travellers:
        for number in tuple(travellers):
            sys.stdout.buffer.write(_answer(travellers, number))
            sys.stdout.buffer.flush()


def _end_with_the_app() -> None:
    """Have Linux end this process with the thread that started it. A closed pipe ends it, too, but
    not while it waits for a file system that does not answer.
    """
    if sys.platform == "linux":
        import ctypes  # 5 ms, in workers only

        ctypes.CDLL(None).prctl(_ON_PARENTS_DEATH, signal.SIGKILL)


def _answer(travellers: dict[int, bytes | Traveller], number: int) -> bytes:
    """Return what a traveller gives in its turn, packed; a failure where it gives nothing that can
    be sent.
    """
    one = travellers.pop(number)
    try:
        if isinstance(one, bytes):
            one = cast("Traveller", unpacked(one))
        found, more = one.read()
        answer = packed(
            (number, WorkerAnswer(found, one.status(), None if more else one))
        )
    except Exception as error:  # noqa: BLE001 - the app reads it itself, and says what is wrong
        return packed(
            (number, WorkerFailure(one_line(f"{type(error).__name__}: {error}", 200)))
        )
    if more:
        travellers[number] = one
    return answer


def _python() -> list[str]:
    """Return how to run a program as we are run, and with as little before it as possible."""
    written = ["-B"] if sys.dont_write_bytecode else []
    return [sys.executable, "-I", "-S", "-X", f"utf8={sys.flags.utf8_mode}", *written]


def _search_path() -> list[str]:
    """Return where a worker looks for modules: where we do, and where we are."""
    return [*filter(None, sys.path), str(Path(__file__).parents[2])]
