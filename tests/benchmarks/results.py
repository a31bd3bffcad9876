"""The table of a run of the benchmark, and what its figures depend on."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

import verl_tui

if TYPE_CHECKING:
    from measuring import Row

HEAD = "| measure | verl-tui | beside it | ratio | goal |\n|---|---|---|---|---|"
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
"""Lines of a Markdown file between which the results stand."""
_PACKAGES = ("textual", "orjson", "wandb", "tensorboard", "tensorboard-data-server")
_BUSY = 0.25
"""Load of each core from which on the machine counts as busy: heuristic."""


def as_line(row: Row) -> str:
    """Return a row as Markdown."""
    ratio = "" if row.ratio is None else f"{row.ratio:.{2 if row.ratio < 10 else 0}f}"
    return f"| {row.measure} | {row.ours} | {row.peer} | {ratio} | {row.goal} |"


def machine() -> str:
    """Return the machine, the versions and the day."""
    known = (
        text.split(":")[1].strip()
        for text in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        if "model n" in text
    )
    processor = next(known, platform.processor() or "processor unknown")
    gigabytes = psutil.virtual_memory().total / 2**30
    programs = ", ".join(f"{name} {_version(name)}" for name in _PACKAGES)
    return (
        f"{processor}, {os.cpu_count()} cores, {gigabytes:.0f} GiB; Linux {platform.release()}; "
        f"verl-tui {verl_tui.__version__}, Python {platform.python_version()}, {programs}; "
        f"{time.strftime('%Y-%m-%d %H:%M %Z')}"
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def load_words(before: float, after: float) -> str:
    """Return how busy the machine was, with a warning where other work may have disturbed it.

    Args:
        before: Load average of a minute before the first measurement.
        after: The same after the last one; one comes from the benchmark itself.
    """
    words = f"Load before {before:.1f}, after {after:.1f}."
    if before > _BUSY * (os.cpu_count() or 1):
        words += (
            " **The machine was busy: ratios of processor time count, seconds do not.**"
        )
    return words


def write(path: Path, text: str) -> None:
    """Write results into a Markdown file: between the two lines that mark their place, or as all of
    it where it has none.
    """
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    before, begin, rest = old.partition(BEGIN)
    _, end, after = rest.partition(END)
    new = f"{before}{begin}\n{text}\n{end}{after}" if begin and end else f"{text}\n"
    path.write_text(new, encoding="utf-8")
