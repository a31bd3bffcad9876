"""How fast event files are read, beside TensorBoard's reader in Python and its server in Rust."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

import psutil
from made_events import TAGS, write_events
from measuring import Cost, Row, in_process, medians

from parts.loading import applied
from verl_tui.sources.formats import tensorboard as reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from measuring import Effort

_BEGINS, _LOADED = b"Starting load cycle", b"Finished load cycle"
"""What the server says before it reads, and once it has read all there is."""
_TENTH = 10
"""EventAccumulator takes so long that it reads this part of the steps only."""


def measure(folder: Path, effort: Effort) -> Iterator[Row]:
    """All scalars of one file; imports and the start of the server are not counted."""
    steps = effort.size(10_000, 300)
    log = folder / "long" / "events.out.tfevents.1.host.1.0"
    short = folder / "short" / "events.out.tfevents.1.host.1.0"
    for path, count in ((log, steps), (short, steps // _TENTH)):
        path.parent.mkdir()
        write_events(path, count)
    count = steps * len(TAGS)
    yield from _beside_rust(f"{count:,} TensorBoard scalars", log, effort)
    yield from _beside_python(f"{count // _TENTH:,} TensorBoard scalars", short, effort)


def _beside_rust(name: str, log: Path, effort: Effort) -> Iterator[Row]:
    server = _server()
    works = [lambda: in_process(lambda: applied(log, reader))]
    if server is not None:
        works.append(lambda: _served(server, log.parent))
    ours, *peer = medians(effort.tries(5), *works)
    yield Row(
        f"{name}: Rust server ÷ verl-tui",
        f"{ours.wall:.2f} s, CPU {ours.cpu:.2f} s",
        f"{peer[0].wall:.2f} s, CPU {peer[0].cpu:.2f} s"
        if peer
        else "skipped: the package tensorboard-data-server is missing",
        peer[0].wall / ours.wall if peer else None,
        "≥ 1",
    )


def _beside_python(name: str, log: Path, effort: Effort) -> Iterator[Row]:
    accumulated = _accumulator()
    works = [lambda: in_process(lambda: applied(log, reader))]
    if accumulated is not None:
        works.append(lambda: in_process(lambda: accumulated(log)))
    ours, *peer = medians(effort.tries(3), *works)
    yield Row(
        f"{name}: `EventAccumulator` ÷ verl-tui, CPU",
        f"CPU {ours.cpu:.2f} s",
        f"CPU {peer[0].cpu:.2f} s"
        if peer
        else "skipped: the package tensorboard is missing",
        peer[0].cpu / ours.cpu if peer else None,
        "≥ 10",
    )


def _server() -> str | None:
    """Return the path of TensorBoard's server, None where it is not installed."""
    try:
        import tensorboard_data_server
    except ImportError:
        return None
    found = tensorboard_data_server.server_binary()
    return str(found) if found else None


def _served(server: str, folder: Path) -> Cost:
    """Return what the server takes to load a folder; checksums it looks at only where it fails."""
    command: list[str | Path] = [
        server, "--logdir", folder, "--port", "0", "--reload", "once", "--verbose",
        "--samples-per-plugin", "scalars=all",
    ]  # fmt: skip
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    ) as process:
        assert process.stderr is not None
        _await_line(process.stderr, _BEGINS)
        began = time.perf_counter()
        _await_line(process.stderr, _LOADED)
        wall = time.perf_counter() - began
        cpu = sum(psutil.Process(process.pid).cpu_times()[:2])
        process.kill()
    return Cost(wall, cpu)


def _await_line(lines: Iterable[bytes], text: bytes) -> None:
    """Read lines until one has a text."""
    if not any(text in line for line in lines):
        raise RuntimeError("TensorBoard's server ended before it had loaded anything")


def _accumulator() -> Callable[[Path], object] | None:
    """Return what reads a file as TensorBoard without the server does, None where it is not
    installed.
    """
    try:
        from tensorboard.backend.event_processing.event_accumulator import (
            EventAccumulator,
        )
    except ImportError:
        return None
    return lambda log: EventAccumulator(str(log), size_guidance={"scalars": 0}).Reload()
