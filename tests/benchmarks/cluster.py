"""Measures how soon a cluster is seen that one Prometheus knows: 20 runs of 150 metrics, 16 nodes
of 8 devices.

    python tests/benchmarks/cluster.py

Debian's package prometheus brings the server. Its past is put in before it starts: an hour, scraped
every 15 s. What the server takes for the same questions is measured beside it, with the answers
thrown away.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))

from prometheus_server import SCRAPE, serving
from terminal import Terminal

from verl_tui.config import Config
from verl_tui.monitor import Monitor
from verl_tui.prometheus_names import named
from verl_tui.reading import ReadingThreads
from verl_tui.runs.views.devices import logged_devices
from verl_tui.sources.http import addresses
from verl_tui.sources.http.client import Client
from verl_tui.sources.http.prometheus_server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_server import Sample

    from verl_tui.sources.http.addresses import Address

RUNS, METRICS, NODES, DEVICES, POINTS = 20, 150, 16, 8, 240
STARTS = 4


def past(end: float) -> Iterator[Sample]:
    """Yield what the server knows."""
    keys = [
        "critic/score/mean",
        "actor/ppo_kl",
        "actor/entropy",
        "actor/grad_norm",
        "response_length/mean",
    ]
    keys += [f"extra/metric_{at}" for at in range(METRICS - len(keys))]
    exporter = {"job": "verl-tui", "instance": "head:9750"}
    for at in range(POINTS):
        moment = end - (POINTS - 1 - at) * SCRAPE
        for key in keys:
            yield (
                "verl_metric_info",
                {"name": named(key).name, "key": key, **exporter},
                1.0,
                moment,
            )
        for run in range(RUNS):
            labels = {"run": f"run-{run:02}", **exporter}
            yield "verl_training_steps_total", labels, float(at), moment
            yield "verl_last_step_timestamp_seconds", labels, moment - 2, moment
            for number, key in enumerate(keys):
                yield named(key).name, labels, math.sin(at / 20 + number + run), moment
        for node in range(NODES):
            for device in range(DEVICES):
                labels = {
                    "Hostname": f"node-{node:02}",
                    "gpu": str(device),
                    "job": "dcgm",
                }
                yield "DCGM_FI_DEV_GPU_UTIL", labels, 90.0, moment
                yield "DCGM_FI_DEV_FB_USED", labels, 60_000.0, moment
                yield "DCGM_FI_DEV_FB_FREE", labels, 20_000.0, moment
                yield "DCGM_FI_DEV_GPU_TEMP", labels, 60.0, moment


class Timed(Client):
    """Notes what is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.questions: list[tuple[Address, str | None]] = []

    def ask(self, address: Address, *, form: str | None = None) -> bytes:
        """Ask, and note it."""
        self.questions.append((address, form))
        return super().ask(address, form=form)


def questions(address: str) -> list[tuple[Address, str | None]]:
    """Return what is asked to load all there is."""
    place = addresses.parse_address(address)
    client = Timed()
    Server(place, client).ask(time.time())
    return client.questions


def server_time(asked: list[tuple[Address, str | None]]) -> tuple[list[float], int]:
    """Return the seconds that the server takes for each of some questions, and the bytes of its
    answers.
    """
    client = Client()
    took = []
    for address, form in asked:
        begin = time.perf_counter()
        client.ask(address, form=form)
        took.append(time.perf_counter() - begin)
    return took, client.received


def watched(address: str) -> tuple[float, float, Monitor]:
    """Return the seconds until the first run is there and until all are, as a front end sees it."""
    monitor = Monitor(Config())
    reading = ReadingThreads(
        [address], gpu_interval=3600.0, clock=time.time, notify=lambda: None
    )
    begin = time.perf_counter()
    first = last = 0.0
    reading.start()
    while sum(
        run.step is not None for run in monitor.runs.values()
    ) < RUNS or not devices(monitor):
        for news in reading.take():
            monitor.apply(news, time.time())
        if not first and monitor.runs:
            first = time.perf_counter() - begin
        last = time.perf_counter() - begin
        time.sleep(0.002)
    reading.stop()
    return first, last, monitor


def painted(*paths: str | Path) -> float:
    """Return the seconds until curves of a run are on the screen of a terminal, the fastest of some
    starts.
    """
    times = []
    for _ in range(STARTS):
        terminal = Terminal(
            [sys.executable, "-m", "verl_tui", *paths], (140, 45), VERL_TUI_STATE=""
        )
        assert terminal.read(30, partial(curves, terminal)), "no curve came"
        times.append(time.perf_counter() - terminal.started)
        terminal.close()
    return min(times)


def curves(terminal: Terminal) -> bool:
    """Tell whether something is drawn in Braille's dots, as charts are."""
    return any("\u2801" <= sign <= "\u28ff" for line in terminal.lines for sign in line)


def local(directory: Path) -> Path:
    """Return a log with the figures of one of the runs."""
    log = directory / "run-00.jsonl"
    rows = [
        {f"extra/metric_{key}": math.sin(at / 20 + key) for key in range(METRICS)}
        for at in range(POINTS)
    ]
    lines = [
        json.dumps({"step": at, "data": {**row, "critic/score/mean": at / POINTS}})
        for at, row in enumerate(rows)
    ]
    log.write_text("\n".join(lines) + "\n")
    return log


def devices(monitor: Monitor) -> int:
    """Return how many devices are known."""
    return sum(len(logged_devices(run)[0]) for run in list(monitor.runs.values()))


def main() -> None:
    """Measure, and say what came of it."""
    end = math.floor((time.time() - 5) / SCRAPE) * SCRAPE
    with (
        tempfile.TemporaryDirectory() as directory,
        serving(Path(directory), past(end)) as address,
    ):
        asked = questions(address)
        took, size = server_time(asked)
        found = 4  # questions that find the runs, before the first of them is loaded
        first, last, monitor = watched(address)
        points = sum(
            len(run.series(key) or ())
            for run in monitor.runs.values()
            for key in run.keys
        )
        print(
            f"{len(asked)} questions, {size / 1e6:.1f} MB; the server takes {sum(took):.2f} s for all,"
        )
        print(f"  {sum(took[: found + 1]):.2f} s until the first run is answered")
        every = (
            f"all {len(monitor.runs)} and {devices(monitor)} devices after {last:.2f} s"
        )
        print(f"first run there after {first:.2f} s, {every}")
        print(f"{points:,} points")
        begin = painted(address)
        start = painted(local(Path(directory)))
        print(
            f"first curves on the screen after {begin:.2f} s; those of one local log after {start:.2f} s"
        )


if __name__ == "__main__":
    main()
