"""Measures how a directory of dumps opens: 60 steps of 70 MB, a real batch of 1024 prompts by 8
responses.

    python tests/benchmarks/dumps.py [--steps 60] [--megabytes 70] [--folder DIR]

Beside it stands what verl's own viewer does (`scripts/rollout_viewer.py`: every row of every dump
through the JSON module, all kept), for a tenth of the directory, times ten. Each is measured in a
process of its own, with the files dropped from the page cache before.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import psutil

from verl_tui.on_demand.samples import SampleBrowser, SamplePage
from verl_tui.reading import ReadingThreads
from verl_tui.records import Batch
from verl_tui.runs.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = "so the sum of both is then we see that x equals y times three plus one hence answer 首先 把 两个 数 相加"


def write(folder: Path, steps: int, megabytes: int) -> None:
    """Write dumps as verl v0.9 does: groups of 8 side by side, sorted by uid."""
    rng = random.Random(0)
    bodies = [
        json.dumps(
            " ".join(rng.choices(TEXT.split(), k=1700)) + ".\n", ensure_ascii=False
        )
        for _ in range(256)
    ]
    prompt = json.dumps("user\nWhat is the sum? " * 20)[1:-1]
    for step in range(1, steps + 1):
        with (folder / f"{step}.jsonl").open("w", encoding="utf-8") as file:
            row = size = 0
            while size < megabytes * 10**6:
                line = (
                    f'{{"input": "{prompt}{row // 8}", "output": {rng.choice(bodies)}, "gts": "72", '
                    f'"score": {float(rng.random() < 0.4)}, "step": {step}, "uid": "{row // 8:08x}_{row % 8}_0"}}\n'
                )
                file.write(line)
                size += len(line.encode())
                row += 1


def drop_cache(folder: Path) -> None:
    """Have the files read from the disk."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class _Screen:
    """What asks the browser, as the app does, for what it would draw."""

    def __init__(self, folder: Path) -> None:
        self.news = threading.Event()
        self.browser, self.run = SampleBrowser(self.news.set), Run("r")
        self.reading = ReadingThreads(
            [str(folder)], gpu_interval=60.0, clock=time.monotonic, notify=self.news.set
        )
        self.peak = 0

    def until(self, done: Callable[[], object]) -> float:
        """Take in what comes until something is so; return the seconds."""
        began = time.perf_counter()
        while not done():
            self.news.wait(0.2)
            self.news.clear()
            for item in self.reading.take():
                if isinstance(item, Batch):
                    self.run.apply(item, time.time())
            self.peak = max(self.peak, psutil.Process().memory_info().rss)
        return time.perf_counter() - began

    def page(self, place: int = -1) -> SamplePage:
        """Return the page of a place, by default the newest."""
        return self.browser.page(self.run.samples, self.run.samples.places[place])

    def known(self) -> bool:
        """Tell whether all of the newest step is known."""
        page = self.page()
        return page.complete and len(page.facts) == page.count

    def evaluated(self) -> bool:
        """Tell whether all figures are known."""
        return all(
            state.status.bytes_read == state.status.size
            for state in self.run.sources.values()
        )


def opened(folder: Path) -> dict[str, float]:
    """Open a directory as the app does; return what it took."""
    screen = _Screen(folder)
    start = psutil.Process().memory_info().rss
    screen.reading.start()
    first = screen.until(lambda: screen.run.samples.places and screen.page().sample(0))
    others = [
        screen.until(lambda place=place: screen.page(place).sample(0))
        for place in range(-2, -10, -1)
    ]
    known = screen.until(screen.known)
    search = screen.until(lambda: screen.page().hits("no such words").complete)
    figures = screen.until(screen.evaluated)
    score = screen.run.series("samples/score")
    return {
        "first sample, s": first,
        "first sample of another step, median s": median(others),
        "what all rows of the newest step scored, s more": known,
        "rows of the newest step": screen.page().count,
        "search of all its texts, s": search,
        "figures, s more": figures,
        "steps with figures": len(score) if score else 0,
        "memory at most, MB above the start": (screen.peak - start) / 1e6,
    }


def loaded(folder: Path, share: int) -> dict[str, float]:
    """Load one of so many dumps as verl's viewer does; return what all of them would take."""
    process = psutil.Process()
    start = process.memory_info().rss
    began = time.perf_counter()
    paths = sorted(folder.iterdir(), key=lambda path: -int(path.stem))
    paths = paths[: max(1, len(paths) // share)]
    kept = {
        path.stem: [json.loads(line) for line in path.open(encoding="utf-8")]
        for path in paths
    }
    times = len(list(folder.iterdir())) / len(kept)
    took = time.perf_counter() - began
    memory = process.memory_info().rss - start
    return {
        "all loaded, s": took * times,
        "memory, MB above the start": memory / 1e6 * times,
    }


def main() -> None:
    """Write, measure, compare, delete."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60, help="10 at least")
    parser.add_argument("--megabytes", type=int, default=70)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--part", choices=["opened", "loaded"])
    options = parser.parse_args()
    if options.part:
        print(
            json.dumps(
                opened(options.folder)
                if options.part == "opened"
                else loaded(options.folder, 10)
            )
        )
        return
    top = options.folder or Path(tempfile.mkdtemp())
    folder = top / "rollouts"
    try:
        if not folder.exists():
            folder.mkdir(parents=True)
            write(folder, options.steps, options.megabytes)
        for part in ("opened", "loaded"):
            drop_cache(folder)
            command = [sys.executable, __file__, "--part", part, "--folder", folder]
            found = json.loads(
                subprocess.run(command, check=True, capture_output=True).stdout
            )
            print(
                part,
                *(f"{name}: {value:.3g}" for name, value in found.items()),
                sep="\n  ",
            )
    finally:
        if options.folder is None:
            shutil.rmtree(top)


if __name__ == "__main__":
    main()
