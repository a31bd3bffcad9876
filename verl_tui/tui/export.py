"""Screenshots as picture and text, the clipboard, and tables of numbers as CSV."""

from __future__ import annotations

import asyncio
import csv
import os
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from verl_tui.exporters.csv import csv_rows
from verl_tui.exporters.file_names import create, named
from verl_tui.rendering.charts.values import in_sight
from verl_tui.rendering.text.printable import middle
from verl_tui.tui.frame import screen_svg, screen_text
from verl_tui.tui.messages import toast
from verl_tui.tui.widgets.rows import Rows
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import App

    from verl_tui.exporters.csv import CsvColumn
    from verl_tui.rendering.charts.plan import ChartLook, PlannedChart
    from verl_tui.rendering.session.snapshot import View

PICTURES = (".svg", ".txt")
"""Kinds of screenshots."""
_MOST = 74_000
"""Bytes copied at most: terminals refuse longer sequences, and this becomes 100 kB."""
_SHORT = 200
"""Characters up to which a copied text is repeated in the message."""
BUDGET = 0.005
"""Seconds of writing at a stretch."""


def clipping(text: str) -> tuple[str, str]:
    """Return as much of a text as a terminal accepts, and the message to the user."""
    data = text.encode("utf-8", "replace")
    copied = data[:_MOST].decode("utf-8", "ignore")
    what = copied
    if len(copied) > _SHORT or "\n" in copied:
        whole = (
            "" if len(data) <= _MOST else f" of {len(text):,}, terminals take no more"
        )
        what = f"{len(copied):,} characters{whole}"
    tmux = "; tmux needs set-clipboard on" if os.environ.get("TMUX") else ""
    return copied, f"copied {what}{tmux}"


def copy_text(app: App[Any], text: str) -> None:
    """Copy a text to the clipboard of the terminal, and confirm it."""
    copied, says = clipping(text)
    app.copy_to_clipboard(copied)
    toast(app, says)


def copy_here(app: App[Any]) -> None:
    """Copy the text at the cursor.

    The first panel or screen with a `clip` returns it, from the focused widget upwards; where none
    has one it is the chosen row of the focused list, or all rows where none can be chosen.
    """
    nodes = (app.focused or app.screen).ancestors_with_self
    texts = (node.clip() for node in nodes if hasattr(node, "clip"))
    rows = app.focused.plain if isinstance(app.focused, Rows) else ""
    text = next(filter(None, texts), rows)
    if text:
        copy_text(app, text)
    else:
        toast(app, "nothing to copy here")


def take_picture(app: App[Any], run: str, endings: Sequence[str]) -> None:
    """Write the screen into the current directory: as `.svg`, `.txt` or both.

    Notifications do not belong there, so they go first.
    """

    def take() -> None:
        texts = [
            screen_svg(app, "verl-tui") if ending == ".svg" else screen_text(app)
            for ending in endings
        ]
        where = type(app.screen).__name__.removesuffix("Screen").lower()
        paths: tuple[Path, ...] = ()
        try:
            paths = create(Path.cwd(), named(run, where), *endings)
            for path, text in zip(paths, texts, strict=True):
                path.write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            _give_up(app, paths, error)
        else:
            more = "".join(f" and {path.suffix}" for path in paths[1:])
            _say(app, "written", paths[0], more)

    app.clear_notifications()
    app.call_after_refresh(take)


def take_table(app: App[Any], name: str, columns: Sequence[CsvColumn]) -> None:
    """Write columns as CSV into the current directory."""
    if any(column.steps for column in columns):
        app.run_worker(write_table(app, name, columns))
    else:
        toast(app, "nothing to write")


def take_chart(
    app: App[Any],
    found: PlannedChart,
    right: PlannedChart | None,
    view: View,
    look: ChartLook,
) -> None:
    """Write the points of a chart that are in sight as CSV into the current directory.

    Args:
        app: Says where they are.
        found: What the chart is of.
        right: What its y axis at the right is of.
        view: What there is.
        look: How the chart is drawn.
    """
    if view.run is not None:
        take_table(
            app, named(view.run.name, found.key), in_sight(found, right, view, look)
        )


async def write_table(app: App[Any], name: str, columns: Sequence[CsvColumn]) -> None:
    """Write columns as RFC 4180 has it, some rows at a time: keys are answered in between."""
    paths: tuple[Path, ...] = ()
    count = -1  # the header is no step
    try:
        paths = create(Path.cwd(), name, ".csv")
        with paths[0].open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            until = monotonic() + BUDGET
            for row in csv_rows(columns):
                writer.writerow(row)
                count += 1
                if monotonic() > until:
                    await asyncio.sleep(0)
                    until = monotonic() + BUDGET
    except OSError as error:
        _give_up(app, paths, error)
    except asyncio.CancelledError:
        # the app ends: half a table would be taken for a whole one
        _remove(paths)
        raise
    else:
        _say(app, f"{counted(count, 'step')} in", paths[0])


def folder() -> str:
    """Return the directory that files are written into."""
    try:
        return str(Path.cwd())
    except OSError:  # it is gone
        return "the current directory"


def _give_up(app: App[Any], paths: Sequence[Path], error: OSError) -> None:
    _remove(paths)
    _say(app, "cannot write to", folder(), f": {error.strerror or error}")


def _remove(paths: Sequence[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _say(app: App[Any], sentence: str, path: Path | str, end: str = "") -> None:
    """Say it in one line; of a path both ends are kept."""
    room = max(8, app.size.width - 9 - len(sentence) - len(end))
    toast(app, f"{sentence} {middle(str(path), room)}{end}")
