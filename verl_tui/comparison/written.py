"""A comparison as it is written: aligned columns for a terminal, Markdown, JSON, and a table with a
row a run.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from verl_tui.comparison.outcomes import KINDS, Figure, MeasuredRun
from verl_tui.comparison.settings import ABSENT
from verl_tui.comparison.tables import TextTable, caption, headlines, tables
from verl_tui.patterns import pattern
from verl_tui.plain_data import Data, plain
from verl_tui.runs.run_id import run_id
from verl_tui.text import cell, one_line

if TYPE_CHECKING:
    from verl_tui.comparison.compare import Comparison


# -- for people ------------------------------------------------------------------------------------


_GAP = "  "
_SPECIAL = pattern(r"([\\`*_{}\[\]<>|~#])")
"""Characters with a meaning in Markdown, which must not take effect in text from logs."""
_LONGEST_NOTE = 4000
_LONGEST_NAME = 48
"""Most characters of the first column of a table; Markdown has names in full."""


def as_text(comparison: Comparison, width: int | None = None) -> str:
    """Return a comparison as aligned columns.

    Args:
        comparison: The comparison.
        width: Cells of a line, at which a table goes on below; None for no limit, for pipes.
    """
    lines = []
    for sentence in (caption(comparison), *headlines(comparison)):
        lines += _wrapped(sentence, width)
    for table in tables(comparison):
        if table.rows or table.note:
            lines += ["", table.heading]
            lines += [f"{_GAP}{line}".rstrip() for line in aligned(table, width)]
            lines += _wrapped(table.note, width, _GAP)
    if comparison.notes:
        lines += ["", "notes"]
        for note in comparison.notes:
            lines += _wrapped(f"- {one_line(note, _LONGEST_NOTE)}", width, _GAP, "  ")
    return "\n".join(lines) + "\n"


def _wrapped(
    text: str, width: int | None, indent: str = "", further: str = ""
) -> list[str]:
    """Return a sentence in lines of a width, in one for None."""
    if not text or width is None:
        return [indent + text] if text else []
    return wrap(text, width, initial_indent=indent, subsequent_indent=indent + further)


def aligned(table: TextTable, width: int | None = None) -> Iterator[str]:
    """Yield the lines of a table; columns that do not fit go on below, beside the names."""
    if not table.rows:
        return
    rows = [table.columns, *([_named(first), *rest] for first, *rest in table.rows)]
    sizes = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    room = math.inf if width is None else width - len(_GAP)
    for at, chosen in enumerate(_pieces(sizes, room, table.naming)):
        if at:
            yield ""
        for row in rows:
            yield _GAP.join(
                _padded(row[i], sizes[i], right=table.numbers and i > 0) for i in chosen
            )


def _named(text: str) -> str:
    """Return a long name with its middle left out: its start and its end say most."""
    if len(text) <= _LONGEST_NAME:
        return text
    half = _LONGEST_NAME // 2
    return f"{text[: half - 1]}…{text[-half:]}"


def _pieces(sizes: Sequence[int], room: float, naming: int) -> Iterator[Sequence[int]]:
    """Yield the indices of the columns that fit beside each other, always with those that name what
    a row is about.
    """
    first = chosen = list(range(naming))
    for i in range(naming, len(sizes)):
        used = sum(sizes[j] + len(_GAP) for j in chosen) + sizes[i]
        if used > room and len(chosen) > naming:
            yield chosen
            chosen = first
        chosen = [*chosen, i]
    yield chosen


def _padded(text: str, size: int, *, right: bool) -> str:
    pad = " " * (size - cell_len(text))
    return pad + text if right else text + pad


def as_markdown(comparison: Comparison) -> str:
    """Return a comparison as Markdown with tables as GitHub and GitLab draw them."""
    lines = ["# Comparison", "", escaped(caption(comparison)), ""]
    lines += [f"- {escaped(sentence)}" for sentence in headlines(comparison)]
    for table in tables(comparison):
        if table.rows or table.note:
            heading = table.heading[:1].upper() + table.heading[1:]
            lines += ["", f"## {escaped(heading)}", "", *markdown_table(table)]
            lines += [""] if table.rows and table.note else []
            lines += [escaped(table.note)] if table.note else []
    if comparison.notes:
        lines += ["", "## Notes", ""]
        lines += [
            f"- {escaped(one_line(note, _LONGEST_NOTE))}" for note in comparison.notes
        ]
    return "\n".join(lines) + "\n"


def markdown_table(table: TextTable) -> Iterator[str]:
    """Yield the lines of a table in Markdown, none for one without rows."""
    if not table.rows:
        return
    rule = ["---", *(["---:" if table.numbers else "---"] * (len(table.columns) - 1))]
    rows = [list(map(escaped, row)) for row in (table.columns, *table.rows)]
    rows.insert(1, rule)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def escaped(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", text)


# -- for programs ----------------------------------------------------------------------------------


VERSION = 1
"""Version of the JSON's schema: grows when a field is removed or changes its meaning."""


def as_data(comparison: Comparison) -> Data:
    """Return a comparison ready for JSON: no value is NaN or infinite."""
    association = comparison.association
    names = [one.run.name for one in comparison.runs]
    runs = [
        {
            **head,
            "id": run_id(one.run),
            "paths": one.run.paths,
            "figures": _known(one.figures),
        }
        for head, one in zip(comparison.heads, comparison.runs, strict=True)
    ]
    settings = [
        {
            "label": one.label,
            "values": {
                name: value
                for name, value in zip(names, one.values, strict=True)
                if value is not ABSENT
            },
        }
        for one in comparison.settings
    ]
    groups = [
        {
            "name": group.name,
            "runs": [member.run.name for member in group.members],
            "by": group.by,
            "figures": _known(group.figures),
        }
        for group in comparison.groups
    ]
    found: Data = plain(
        {
            **({"columns": comparison.asked} if comparison.asked else {}),
            "version": VERSION,
            "baseline": comparison.groups[0].name,
            "align": comparison.alignment.name.lower(),
            "last": comparison.runs[0].count,
            "runs": runs,
            "settings": settings,
            "groups": groups,
            "differences": comparison.differences,
            "correlations": association.found,
            "confounded": association.confounded,
            "not_ranked": association.unranked,
            "notes": comparison.notes,
        }
    )
    return found


def _known(figures: Mapping[str, Figure]) -> dict[str, Figure | None]:
    return {id: None if one.value is None else one for id, one in figures.items()}


def as_csv(comparison: Comparison) -> str:
    """Return a table with one row per run: names and figures first, then the settings that
    differ.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for at, one in enumerate(comparison.runs):
        row = dict(_cells(comparison.heads[at], one))
        for column, value in comparison.asked.get(one.run.name, {}).items():
            row[f"column:{column}"] = plain(value)
        for setting in comparison.settings:
            value = setting.values[at]
            row[f"setting:{setting.label}"] = "" if value is ABSENT else value
        if at == 0:
            writer.writerow(row)
        writer.writerow(cell(it) if isinstance(it, str) else it for it in row.values())
    return out.getvalue()


def _cells(head: Data, one: MeasuredRun) -> Iterator[tuple[str, Any]]:
    yield from (("run" if key == "name" else key, head[key]) for key in head)
    for kind in KINDS.values():
        figure = one.figures[kind.id]
        if kind.of != "steps":
            yield kind.id, plain(figure.value)
        if kind.of == "mean":
            yield f"{kind.id}_sd", plain(figure.sd)
            yield f"{kind.id}_n", figure.n or None
        if kind.of in ("best", "highest"):
            yield f"{kind.id}_step", figure.step
