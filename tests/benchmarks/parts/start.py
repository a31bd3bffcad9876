"""How soon the first text is on the screen, and what commands take on a small run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from made_logs import line
from measuring import APP, Row, has_read, medians, of_command, on_screen, seconds, shows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from measuring import Effort

SIZE = (140, 45)
BARE = """
from textual.app import App
from textual.widgets import Label

class Bare(App):
    def compose(self):
        yield Label("nothing but text")

Bare().run()
"""
"""The least that Textual can do."""
COMMANDS = (("check",), ("get", "state"), ("get", "metrics"))
_CRITICAL = 2
"""The highest status with which commands end that have judged."""


def screen(folder: Path, effort: Effort) -> Iterator[Row]:
    """The first text, and all of a small run, beside the first text of an app that has no more."""
    log, bare = _small_run(folder), folder / "bare.py"
    bare.write_text(BARE, encoding="utf-8")
    least: list[str | Path] = [sys.executable, bare]
    on_screen([*APP, log], SIZE, shows("verl-tui"))  # compiles
    first, all_, alone = medians(
        effort.tries(5),
        lambda: on_screen([*APP, log], SIZE, shows("verl-tui")),
        lambda: on_screen([*APP, log], SIZE, has_read(199)),
        lambda: on_screen(least, SIZE, shows("nothing but text")),
    )
    beside = f"Textual with one word: {seconds(alone)}"
    yield Row(
        "start: first text ÷ bare Textual",
        seconds(first),
        beside,
        first.wall / alone.wall,
        "≤ 0.30 s",
    )
    ratio = all_.wall / alone.wall
    yield Row(
        "start: all of a small run ÷ bare Textual",
        seconds(all_),
        beside,
        ratio,
        "≤ 60 MiB",
    )


def commands(folder: Path, effort: Effort) -> Iterator[Row]:
    """Commands on a small run, beside a Python that does nothing."""
    log = _small_run(folder)
    works = [[*APP, *words, log] for words in COMMANDS]
    nothing: list[str | Path] = [sys.executable, "-c", "pass"]
    *costs, least = medians(
        effort.tries(7),
        *(
            lambda command=command: of_command(command, _CRITICAL)
            for command in (*works, nothing)
        ),
    )
    for words, cost in zip(COMMANDS, costs, strict=True):
        yield Row(
            f"`{' '.join(words)}` of a small run ÷ `python -c pass`",
            seconds(cost),
            seconds(least),
            cost.wall / least.wall,
            "≤ 0.3 s",
        )


def _small_run(folder: Path) -> Path:
    log = folder / "log.jsonl"
    log.write_text("".join(line(step) for step in range(1, 200)), encoding="utf-8")
    return log
