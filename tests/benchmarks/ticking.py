"""Runs the app with a task that wakes every 5 ms, and writes how late it woke while the log was
loading and judged.

python ticking.py LOG RESULT SECONDS
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from time import perf_counter

from terminal import memory

from verl_tui.config import Config
from verl_tui.tui.app import VerlApp

_WAKE = 0.005


class Ticking(VerlApp):
    """The app, watched."""

    def on_ready(self) -> None:
        """Begin to tick after the first frame."""
        self._ticking = asyncio.get_running_loop().create_task(self._tick_on())

    async def _tick_on(self) -> None:
        late: list[float] = []
        began = perf_counter()
        most = float(sys.argv[3])
        while perf_counter() - began < most:
            before = perf_counter()
            await asyncio.sleep(_WAKE)
            late.append(perf_counter() - before - _WAKE)
            if most > 30 and self._is_judged():
                break
        seconds = perf_counter() - began
        Path(sys.argv[2]).write_text(
            json.dumps(
                {"late": late, "seconds": seconds, "memory": memory(os.getpid())}
            )
        )
        self.exit(0)

    def _is_judged(self) -> bool:
        """Return whether all of the log has been read and judged."""
        monitor = self.monitor
        if not monitor.runs or monitor.is_loading:
            return False
        return monitor.runs.keys() <= monitor.verdicts.keys()


Ticking([sys.argv[1]], Config()).run()
