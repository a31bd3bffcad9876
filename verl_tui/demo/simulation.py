"""Three simulated trainings that write real logs, at once or live."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from verl_tui.demo import curves
from verl_tui.demo.grpo import GrpoRun
from verl_tui.demo.tutorial import TutorialRun

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from pathlib import Path

HISTORY = 120
"""Steps that lie in the past when the demo opens: two fifths of the healthy runs."""
SUSPENSE = 24
"""Records that the collapsing run has left before its cliff when the demo opens, so that one sees
it happen.
"""
PACE_S = 1.0
"""Seconds between two steps, in the history as well as live."""


class SimulatedRun(Protocol):
    """A training that is written step by step."""

    directory: Path
    total: int

    def start(self, time: float) -> None:
        """Write what comes before the first step."""

    def write(self, tick: int, time: float) -> None:
        """Write one step, from 1 to `total`."""

    def finish(self, time: float) -> None:
        """Write what comes after the last step."""


class Simulation:
    """The demo's trainings: two healthy ones, and one that collapses before one's eyes.

    Args:
        directory: Where the runs' directories are made.
        seed: Chooses the story's details; the same seed and times write the same bytes.
        now: The clock.
    """

    def __init__(self, directory: Path, seed: int, now: Callable[[], float]) -> None:
        self.directory = directory
        self._now = now
        self._collapsing = TutorialRun(
            directory / "run_ppo_collapse", seed, collapsing=True
        )
        self.runs: tuple[SimulatedRun, ...] = (
            GrpoRun(directory / "run_grpo_gsm8k", seed),
            TutorialRun(directory / "run_ppo_tutorial", seed),
            self._collapsing,
        )
        """The runs in the order in which they are written."""
        self._written: dict[SimulatedRun, int] = {}

    @property
    def finished(self) -> bool:
        """True once every run has written its last line."""
        return bool(self._written) and all(
            self._written[run] == run.total for run in self.runs
        )

    def prepare(self, history: int = HISTORY) -> None:
        """Start all runs and write their past, as if they had been training until this moment.

        Args:
            history: Steps of the past. The collapsing run gets fewer, so that its cliff is still
                ahead.
        """
        cliff = curves.COLLAPSE_STEP // self._collapsing.interval
        begin = dict.fromkeys(self.runs, history)
        begin[self._collapsing] = min(history, cliff - SUSPENSE)
        self._begin(begin)

    def write_all(self) -> None:
        """Write all runs from beginning to end, as if the last step had just been made."""
        self._begin({run: run.total for run in self.runs})

    def advance(self) -> bool:
        """Write one more step of each run that has any left; the first call starts runs that were
        not prepared.

        Returns:
            Whether there is more to come.
        """
        if not self._written:
            self.prepare(0)
        time = self._now()
        for run in self.runs:
            if self._written[run] < run.total:
                self._step(run, time)
        return not self.finished

    def run(self, stop: threading.Event, pace_s: float = PACE_S) -> None:
        """Advance at a steady pace until the runs are over or `stop` is set.

        Args:
            stop: Ends the simulation at once, also between two steps.
            pace_s: Seconds between two steps.
        """
        while not stop.wait(pace_s) and self.advance():
            pass

    def _begin(self, history: dict[SimulatedRun, int]) -> None:
        end = self._now()
        for run, wanted in history.items():
            ticks = min(wanted, run.total)
            self._written[run] = 0
            run.start(end - ticks * PACE_S)
            for tick in range(1, ticks + 1):
                self._step(run, end - (ticks - tick) * PACE_S)

    def _step(self, run: SimulatedRun, time: float) -> None:
        self._written[run] += 1
        run.write(self._written[run], time)
        if self._written[run] == run.total:
            run.finish(time)
