"""Measures the exporter for Prometheus with many runs: a scrape over HTTP, the making of a page,
and memory.

python tests/benchmarks/scrape.py [RUNS [METRICS [STEPS]]]
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from statistics import median

import psutil

from verl_tui.dialects import dialect
from verl_tui.indicators import INDICATORS, spellings

TRIES = 15


def write(directory: Path, runs: int, metrics: int, steps: int) -> None:
    """Write runs as verl's file logger does."""
    dice = random.Random(0)
    names = [one for indicator in INDICATORS for one in spellings(indicator)]
    known = [one for one in names if dialect((one,)) == "verl"]
    others = [f"timing_s/part_{number}" for number in range(30)] + [
        f"actor/figure_{number}" for number in range(metrics)
    ]
    keys = [*known, *others][:metrics]
    for run in range(runs):
        path = directory / f"run_{run}" / "log.jsonl"
        path.parent.mkdir()
        with path.open("w", encoding="utf-8") as file:
            for step in range(1, steps + 1):
                file.write(
                    json.dumps(
                        {"step": step, "data": {key: dice.random() for key in keys}}
                    )
                    + "\n"
                )


def scraped(address: str) -> bytes:
    """Return the page, nothing while the logs are still being read."""
    try:
        with urllib.request.urlopen(address) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError:
        return b""


def main() -> None:
    """Print what a scrape takes as its client sees it, and how much memory the exporter has."""
    runs, metrics, steps = (
        *map(int, sys.argv[1:]),
        *(50, 150, 200)[len(sys.argv) - 1 :],
    )
    with tempfile.TemporaryDirectory() as directory:
        write(Path(directory), runs, metrics, steps)
        command = [
            sys.executable,
            "-m",
            "verl_tui",
            "export",
            "prometheus",
            directory,
            "--port",
            "0",
        ]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as exporter:
            assert exporter.stderr is not None
            address = next(
                found[0]
                for line in exporter.stderr
                if (found := re.search(r"http://\S+", line))
            )
            process = psutil.Process(exporter.pid)
            begun = time.perf_counter()
            while not (page := scraped(address)):
                time.sleep(0.2)
            loaded = time.perf_counter() - begun
            taken = []
            for _ in range(TRIES):
                begun = time.perf_counter()
                page = scraped(address)
                taken.append(time.perf_counter() - begun)
                time.sleep(1)
            before = sum(process.cpu_times()[:2])
            begun = time.perf_counter()
            time.sleep(20)
            busy = (sum(process.cpu_times()[:2]) - before) / (
                time.perf_counter() - begun
            )
            memory = process.memory_info().rss / 1e6
            exporter.terminate()
    series = sum(not line.startswith(b"#") for line in page.splitlines())
    print(
        f"{runs} runs x {metrics} metrics x {steps} steps: first page after {loaded:.1f} s, {series:,} series"
    )
    print(
        f"a scrape: median {1e3 * median(taken):.0f} ms, longest {1e3 * max(taken):.0f} ms, {len(page) / 1e3:,.0f} kB"
    )
    print(f"memory {memory:.0f} MB; idle, a page each 10 s: {busy:.1%} of one core")


if __name__ == "__main__":
    main()
