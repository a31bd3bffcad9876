"""Writes `train.log` as a terminal shows a verl 0.9 run: Ray's coloured prefixes, step lines,
progress bars, noise.
"""

from __future__ import annotations

import pprint
import weakref
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_CYAN, _GREEN, _RESET = "\x1b[36m", "\x1b[32m", "\x1b[0m"
_DRIVER = ("TaskRunnerV1", 19847)
_NUMPY = ("val-", "training/num_turns/", "training/off_policy/")
"""Prefixes of the metrics that V1 hands on as numpy scalars; all others are plain Python numbers by
then.
"""
_BLOCKS = " ▏▎▍▌▋▊▉█"
_HINT = (
    " (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to disable log deduplication, or see"
    " "
    "https://docs.ray.io/en/master/ray-observability/user-guides/configure-logging.html"
    "#log-deduplication"
    " for more options.)"
)


class Console:
    """The console log of a run as `2>&1 | tee train.log` keeps it, open until its end."""

    def __init__(self, path: Path, total: int) -> None:
        self._file = path.open("wb", buffering=0)
        weakref.finalize(self, self._file.close)
        self._total = total
        """Steps of the run, the denominator of the progress bar."""
        self._started = 0.0
        self._last = 0.0
        self._bar = ""
        self._hinted = False

    def ray(self, time: float) -> None:
        """Print Ray's first line, before there is a worker to prefix it."""
        stamp = f"{_local(time):%Y-%m-%d %H:%M:%S},{_milliseconds(time):03d}"
        address = "\x1b[1m\x1b[32mhttp://127.0.0.1:8265 \x1b[39m\x1b[22m"
        self._append(
            f"{stamp}\tINFO worker.py:2012 -- Started a local Ray instance. View the dashboard at "
            f"{address}\n"
        )

    def driver(self, text: str) -> None:
        """Print lines of the driver with its prefix."""
        self.worker(*_DRIVER, text.split("\n"))

    def structure(self, value: object) -> None:
        """Print with `pprint`, as verl does with its configuration and with validation results."""
        self.driver(pprint.pformat(value))

    def info(self, time: float, message: str) -> None:
        """Print a record of the driver's Python logging."""
        self.driver(
            f"INFO:{_local(time):%Y-%m-%d %H:%M:%S},{_milliseconds(time):03d}:{message}"
        )

    def worker(
        self, name: str, pid: int, lines: Iterable[str], *, repeated: int = 0
    ) -> None:
        """Print lines of a worker.

        Args:
            name: The actor's class.
            pid: Its process.
            lines: The lines to print.
            repeated: How many other workers said the same within five seconds, and were left out by
                Ray.
        """
        note = ""
        if repeated:
            note = (
                f"{_GREEN} [repeated {repeated}x across "
                f"cluster]{'' if self._hinted else _HINT}{_RESET}"
            )
            self._hinted = True
        self._append(
            "".join(
                f"{_CYAN}({name} pid={pid}){_RESET} {line}{note}\n" for line in lines
            )
        )

    def step(self, data: Mapping[str, float], step: int) -> None:
        """Print the metrics of a step on one line."""
        self.driver(
            " - ".join(
                [
                    f"step:{step}",
                    *(f"{key}:{shown(key, value)}" for key, value in data.items()),
                ]
            )
        )

    def progress(self, step: int, time: float) -> None:
        """Print the progress bar as it stands after a step; step 0 draws the empty one."""
        if step == 0:
            self._started = self._last = time
        self._bar = _bar(step, self._total, time - self._started, time - self._last)
        self._last = time
        self.driver(self._bar)

    def close(self) -> None:
        """Close the bar, which tqdm draws once more, and the log."""
        self.driver(self._bar)
        self._file.close()

    def _append(self, text: str) -> None:
        self._file.write(text.encode())


def shown(key: str, value: float) -> str:
    """Return a value as `pprint.pformat` shows it under numpy 2."""
    if not key.startswith(_NUMPY):
        return repr(value)
    return f"np.int64({value})" if isinstance(value, int) else f"np.float64({value})"


def validation_text(title: str, data: Mapping[str, float]) -> str:
    """Return `Initial validation metrics: {…}` with its dictionary in Python's notation."""
    pairs: list[Any] = [f"{key!r}: {shown(key, value)}" for key, value in data.items()]
    return f"{title} validation metrics: {{{', '.join(pairs)}}}"


def _bar(step: int, total: int, elapsed: float, last: float) -> str:
    """Return tqdm's line in a log file, where it knows no width and draws ten cells."""
    percent = f"Training Progress: {step / total * 100:3.0f}%"
    full, part = divmod(int(step / total * 80), 8)
    bar = ("█" * full + (_BLOCKS[part] if full < 10 else "")).ljust(10)
    if step == 0:
        return f"\r{percent}|{bar}| 0/{total} [00:00<?, ?it/s]"
    # The remaining time goes by the average, the rate by the latest step: close to tqdm's smoothed
    # figure.
    remaining = elapsed / step * (total - step)
    rate = f"{last:5.2f}s/it" if last >= 1 or last <= 0 else f"{1 / last:5.2f}it/s"
    times = f"{_interval(elapsed)}<{_interval(remaining)}"
    return f"\r{percent}|{bar}| {step}/{total} [{times}, {rate}]"


def _interval(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:d}:{minutes:02d}:{rest:02d}"
    return f"{minutes:02d}:{rest:02d}"


def _local(time: float) -> datetime:
    return datetime.fromtimestamp(time, tz=timezone.utc).astimezone()


def _milliseconds(time: float) -> int:
    return _local(time).microsecond // 1000
