"""Two simulated trainings that write real logs, at once or live."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.demo.grpo import GrpoRun

if TYPE_CHECKING:
    import threading

HISTORY = 120
"""Steps that lie in the past when the demo opens; half a minute before the collapse."""
PACE_S = 1.0
"""Seconds between two steps, in the history as well as live."""


class Simulation:
    """The demo's trainings: a healthy one, and one that collapses before one's eyes.

    Args:
        directory: Where the runs' directories are made.
        seed: Chooses the story's details; the same seed and times write the same bytes.
        now: The clock.
    """

    def __init__(self, directory: Path, seed: int, now: Callable[[], float]) -> None:
        self.directory = directory
        self._now = now
        self.runs = (
            GrpoRun(directory / "run_grpo_gsm8k", seed),
            GrpoRun(directory / "run_grpo_high_lr", seed, collapses=True),
        )
        self._written: int | None = None
        """Steps of each run so far, None before the start."""

    @property
    def finished(self) -> bool:
        """True once every run has written its last line."""
        return self._written == GrpoRun.total

    def prepare(self, history: int = HISTORY) -> None:
        """Start all runs and write so many steps of their past, as if they had been training until
        this moment.
        """
        end = self._now()
        self._written = 0
        for run in self.runs:
            run.start(end - history * PACE_S)
        for left in reversed(range(history)):
            self._step(end - left * PACE_S)

    def advance(self) -> bool:
        """Write one more step of each run, if any is left; the first call starts runs that were not
        prepared. Return whether there is more to come.
        """
        if self._written is None:
            self.prepare(0)
        if not self.finished:
            self._step(self._now())
        return not self.finished

    def run(self, stop: threading.Event, pace_s: float = PACE_S) -> None:
        """Advance at a steady pace until the runs are over or `stop` is set.

        Args:
            stop: Ends the simulation at once, also between two steps.
            pace_s: Seconds between two steps.
        """
        while not stop.wait(pace_s) and self.advance():
            pass

    def _step(self, time: float) -> None:
        self._written = step = (self._written or 0) + 1
        for run in self.runs:
            run.write(step, time)
            if self.finished:
                run.finish(time)
