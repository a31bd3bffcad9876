"""Writes `train.log` as a terminal shows a verl 0.9 run: Ray's coloured prefixes, step lines,
progress bars.
"""

from __future__ import annotations

import pprint
import weakref
from datetime import datetime, timezone
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_NUMPY = ("val-", "training/num_turns/")
"""Prefixes of the metrics that V1 hands on as numpy scalars; all others are plain Python numbers by
then.
"""
_BLOCKS = " ▏▎▍▌▋▊▉█"


class Console:
    """The console log of a run as `2>&1 | tee train.log` keeps it, open until its end."""

    def __init__(self, path: Path, total: int, started: float) -> None:
        self._file = path.open("wb", buffering=0)
        weakref.finalize(self, self._file.close)
        self._total = total
        self._started = self._last = started
        self._bar = ""

    def driver(self, text: str) -> None:
        """Print lines of the driver with its prefix."""
        lines = text.split("\n")
        prefix = "\x1b[36m(TaskRunnerV1 pid=19847)\x1b[0m"
        self._file.write("".join(f"{prefix} {line}\n" for line in lines).encode())

    def structure(self, value: object) -> None:
        """Print with `pprint`, as verl does with its configuration and with validation results."""
        self.driver(pprint.pformat(value))

    def info(self, time: float, message: str) -> None:
        """Print a record of the driver's Python logging."""
        at = datetime.fromtimestamp(time, tz=timezone.utc).astimezone()
        stamp = f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}"
        self.driver(f"INFO:{stamp}:{message}")

    def step(self, data: Mapping[str, float], step: int) -> None:
        """Print the metrics of a step on one line."""
        pairs = [f"{key}:{shown(key, value)}" for key, value in data.items()]
        self.driver(" - ".join([f"step:{step}", *pairs]))

    def progress(self, step: int, time: float) -> None:
        """Print the progress bar as it stands after a step; step 0 draws the empty one."""
        self._bar = self._drawn(step, time)
        self._last = time
        self.driver(self._bar)

    def close(self) -> None:
        """Close the bar, which tqdm draws once more, and the log."""
        self.driver(self._bar)
        self._file.close()

    def _drawn(self, step: int, time: float) -> str:
        """Return tqdm's line in a log file, where it knows no width and draws ten cells."""
        percent = f"Training Progress: {step / self._total * 100:3.0f}%"
        full, part = divmod(int(step / self._total * 80), 8)
        bar = ("█" * full + (_BLOCKS[part] if full < 10 else "")).ljust(10)
        if step == 0:
            return f"\r{percent}|{bar}| 0/{self._total} [00:00<?, ?it/s]"
        # The remaining time goes by the average, the rate by the latest step: close to tqdm's
        # smoothed figure.
        elapsed, last = time - self._started, time - self._last
        remaining = elapsed / step * (self._total - step)
        rate = f"{last:5.2f}s/it" if last >= 1 or last <= 0 else f"{1 / last:5.2f}it/s"
        times = f"{_interval(elapsed)}<{_interval(remaining)}"
        return f"\r{percent}|{bar}| {step}/{self._total} [{times}, {rate}]"


def shown(key: str, value: float) -> str:
    """Return a value as `pprint.pformat` shows it under numpy 2."""
    if not key.startswith(_NUMPY):
        return repr(value)
    return f"np.int64({value})" if isinstance(value, int) else f"np.float64({value})"


def _interval(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"{hours:d}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"
    )
