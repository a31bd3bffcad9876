"""Lays runs out as rows of text: three or two of them, or a short one, whatever there is room for.

Pure functions of what is said of each run; they know no screen. Widths are terminal cells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.rendering.charts.sparkline import BROKEN, gauge, sparkline
from verl_tui.rendering.text.numbers import percent_done
from verl_tui.rendering.text.piece import Pieces
from verl_tui.rendering.text.printable import cut
from verl_tui.rendering.text.run_colours import RUNS
from verl_tui.rendering.text.short_names import shared, short_name
from verl_tui.rendering.text.wrap import ellipsis
from verl_tui.runs.views.state import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.charts.chart_data import Points

ROLES = (
    "ok",
    "warning",
    "critical",
    "nothing",
    "name",
    "shown",
    "dim",
    "bar",
    "spark",
    "odd",
    *RUNS,
)
"""What a piece of a row is."""
_BADGES = {"ok": "●", "warning": "▲", "critical": "✖", "nothing": "○"}
_ASCII_BADGES = {"ok": "o", "warning": "!", "critical": "X", "nothing": "-"}
_HEALTH = {
    "ok": "nothing found",
    "warning": "warning",
    "critical": "critical",
    "nothing": "not judged",
}
"""What badges say."""
_STATE_ROLES = {State.RUNNING: "name", State.STALLED: "warning", State.CRASHED: "critical"}
"""Only trouble has a colour."""
_SIGNS = {State.FINISHED: "✓", State.CRASHED: "†", State.STALLED: "‖", State.ENDED: "?"}
_ASCII_SIGNS = {State.FINISHED: "+", State.CRASHED: "#", State.STALLED: "=", State.ENDED: "?"}
"""What is left of a state's word where a name needs the room; of a run that goes on the badge says
enough.
"""
_WHOLE_NAME = 18
"""Names up to here are shown whole at the cost of how far a run is."""
_INDENT = 4
"""Cells of number and badge, with the spaces after them; what was found is counted beside the
badge.
"""


@dataclass(frozen=True, slots=True)
class RunEntry:
    """What is said of one run."""

    name: str
    badge: str
    """Role of the badge."""
    count: str
    """How much was found that the user does not know of yet, as wide in all entries; blank where
    nothing was.
    """
    state: State
    steps: str
    share: float | None
    """How much of the run is done, 0..1."""
    eta: str
    age: str
    reward: Points | None
    number: str = " "
    shown: bool = False
    ranked: str = ""
    """What the list is sorted by, which a row then says that has room for one thing."""
    mark: tuple[str, str] = ("", "")
    """What a selected run is known by, and its role; as wide in all entries, blank where a run is
    not selected.
    """

    @property
    def indent(self) -> int:
        """Cells before the name, and before what stands below it."""
        return _INDENT + len(self.count) + len(self.mark[0])

    @property
    def percent(self) -> str:
        """How much is done, never 100 % before the end."""
        return "" if self.share is None else percent_done(self.share)


def glyph(badge: str, *, ascii_only: bool) -> str:
    """Return the mark of a badge; marks differ by shape as well as by colour."""
    return (_ASCII_BADGES if ascii_only else _BADGES)[badge]


def sign(state: State, *, ascii_only: bool) -> str:
    """Return what stands for the word of a state, a space where nothing does."""
    return (_ASCII_SIGNS if ascii_only else _SIGNS).get(state, " ")


def signs(*, ascii_only: bool) -> str:
    """Say what the signs of states mean."""
    return ", ".join(f"{sign(state, ascii_only=ascii_only)} {state.value}" for state in _SIGNS)


def badges(*, ascii_only: bool) -> str:
    """Say what the marks of badges mean."""
    return ", ".join(
        f"{glyph(badge, ascii_only=ascii_only)} {means}" for badge, means in _HEALTH.items()
    )


EntryWriter = Callable[["RunEntry"], list[Pieces]]
"""Writes the rows of one run; of two hundred runs only those in sight are written."""
NameWriter = Callable[["RunEntry", int], str]
"""Writes the name of a run in so many cells, so that it differs from those of the others."""


def naming(names: Sequence[str], *, ascii_only: bool) -> NameWriter:
    """Return what writes the names of runs."""
    alike = shared(names)
    return lambda entry, cells: short_name(entry.name, cells, alike, ascii_only=ascii_only)


def pairs(entries: Sequence[RunEntry], width: int, *, ascii_only: bool) -> EntryWriter:
    """Two rows a run: what it is and how it does, then how far it is."""
    steps = max(len(entry.steps) for entry in entries)
    eta = max([6, *(len(entry.eta) for entry in entries)])
    indent = entries[0].indent
    plan = _plan(width - indent, steps, eta)
    named = naming([entry.name for entry in entries], ascii_only=ascii_only)

    def rows(entry: RunEntry) -> list[Pieces]:
        doing, room = _doing(entry, ascii_only=ascii_only), width - indent - 2
        if cell_len(entry.name) + len(doing) > room:
            doing = entry.state.value
        if cell_len(entry.name) + len(doing) > room:
            head = _signed(entry, width, named, ascii_only=ascii_only)
        else:
            word, role = state_word(entry, 0, ascii_only=ascii_only)
            head = head_of(entry, room - len(doing), named, ascii_only=ascii_only)
            head += [("  ", ""), (word, role), (doing[len(word) :], "dim")]
        return [head, _progress(entry, width, steps, plan, indent=indent, ascii_only=ascii_only)]

    return rows


def triples(entries: Sequence[RunEntry], width: int, *, ascii_only: bool) -> EntryWriter:
    """Three rows a run: its name, how it does and its reward, how far it is."""
    steps = max(len(entry.steps) for entry in entries)
    eta = max([6, *(len(entry.eta) for entry in entries)])
    room = width - _INDENT
    plan = _plan(room, steps, eta) | {"spark": 0}
    words = max(len(_doing(entry, ascii_only=ascii_only)) for entry in entries)
    spark = room - words - 2
    named = naming([entry.name for entry in entries], ascii_only=ascii_only)

    def rows(entry: RunEntry) -> list[Pieces]:
        state, age = (
            state_word(entry, 0, ascii_only=ascii_only),
            _doing(entry, ascii_only=ascii_only)[len(entry.state.value) :],
        )
        # The reward's line is worth more than standing right below the name.
        row: Pieces = [(" " * _INDENT, ""), state, (age.ljust(words - len(state[0])), "dim")]
        row += (
            [("  ", ""), *spark_of(entry, min(spark, 18), ascii_only=ascii_only)]
            if spark >= 5
            else []
        )
        head = head_of(entry, width - entry.indent, named, ascii_only=ascii_only)
        return [
            head,
            row,
            _progress(entry, width, steps, plan, indent=_INDENT, ascii_only=ascii_only),
        ]

    return rows


def singles(names: Sequence[str], width: int, *, ascii_only: bool) -> EntryWriter:
    """One short row a run; of which they are only the names are asked for."""
    named = naming(names, ascii_only=ascii_only)
    return lambda entry: [short(entry, width, named, ascii_only=ascii_only)]


def _doing(entry: RunEntry, *, ascii_only: bool) -> str:
    """Return the state, and the age of the last record behind it."""
    return entry.state.value + ((" - " if ascii_only else " · ") + entry.age if entry.age else "")


def _progress(
    entry: RunEntry, width: int, steps: int, plan: dict[str, int], *, indent: int, ascii_only: bool
) -> Pieces:
    """Write the second row: bar, steps, share, end, reward, as far as the plan has room for
    them.
    """
    row: Pieces = [(" " * indent, "")]
    if plan["bar"]:
        row += [bar_of(entry, plan["bar"], ascii_only=ascii_only), (" ", "")]
    row.append((f"{entry.steps:>{steps}}"[: width - indent], "name"))
    if plan["percent"]:
        row.append((f" {entry.percent:>4}", "dim"))
    if plan["eta"]:
        row.append(
            (
                "  " + (_labelled(entry.eta) if plan["label"] else entry.eta).ljust(plan["eta"]),
                "dim",
            )
        )
    if plan["spark"]:
        row += [("  ", ""), *spark_of(entry, plan["spark"], ascii_only=ascii_only)]
    return row


def _plan(width: int, steps: int, eta: int) -> dict[str, int]:
    """Share the second row out: steps first, then the end, bar, reward, the word `eta`, the
    percentage; then grow.
    """
    plan = dict.fromkeys(("eta", "bar", "spark", "label", "percent"), 0)
    spare = width - steps
    for part, cells, size in (
        ("eta", eta + 2, eta), ("bar", 5, 4), ("spark", 8, 6), ("label", 4, 4), ("percent", 5, 5),
    ):  # fmt: skip
        if spare < cells:
            break
        spare -= cells
        plan[part] = size
    plan["eta"] += plan["label"]
    if plan["bar"]:
        grown = min(8, spare // 2 if plan["spark"] else spare)
        plan["bar"] += grown
        plan["spark"] += min(18, spare - grown) if plan["spark"] else 0
    return plan


def short(entry: RunEntry, width: int, named: NameWriter, *, ascii_only: bool) -> Pieces:
    """One row without columns, `1 ● run  step 120/500 24% ETA 1h`; the least needed words go first.

    The word of a state goes before anything is cut from a name, all other words before much is.
    """
    mark = ellipsis(ascii_only=ascii_only)
    length = cell_len(entry.name)
    name_cells = min(length, _WHOLE_NAME) if entry.eta or entry.ranked else length
    words, end = _words_behind(entry, width - entry.indent - 2 - name_cells)
    if not words:
        return cut(_signed(entry, width, named, ascii_only=ascii_only), width, mark)
    start = words.removesuffix(end)
    name = named(entry, width - entry.indent - 2 - len(words))
    head = head_of(entry, cell_len(name), named, ascii_only=ascii_only)
    role = "dim" if entry.eta else _STATE_ROLES.get(entry.state, "dim")
    return cut([*head, ("  ", ""), (start, "dim"), (words[len(start) :], role)], width, mark)


def _words_behind(entry: RunEntry, room: int) -> tuple[str, str]:
    """Return the words that fit behind a name, the richest choice first, and those at their end."""
    if entry.ranked:
        return entry.ranked if len(entry.ranked) <= room else "", ""
    end = "" if entry.state is State.RUNNING else entry.state.value
    if entry.eta:
        end = f"ETA {entry.eta}"
    steps = f"step {entry.steps}" if entry.steps else ""
    for words in (
        (steps, entry.percent, end),
        (steps, end),
        (entry.steps, end),
        (entry.percent, end),
        (end,),
    ):
        text = " ".join(filter(None, words))
        if text and len(text) <= room:
            return text, end
    return "", end


def _signed(entry: RunEntry, width: int, named: NameWriter, *, ascii_only: bool) -> Pieces:
    """Write little but the name, and at the end of the row the sign of the state."""
    head = head_of(entry, width - entry.indent - 2, named, ascii_only=ascii_only)
    return [*head, (" ", ""), state_word(entry, 1, ascii_only=ascii_only)]


def head_of(entry: RunEntry, cells: int, named: NameWriter, *, ascii_only: bool) -> Pieces:
    """Write what a row begins with: number, badge, letter, and the name in so many cells."""
    name = named(entry, cells)
    return [
        (f"{entry.number} ", "dim"),
        (f"{glyph(entry.badge, ascii_only=ascii_only)}{entry.count} ", entry.badge),
        entry.mark,
        (name, "shown" if entry.shown else "name"),
        (" " * (cells - cell_len(name)), ""),
    ]


def state_word(entry: RunEntry, cells: int, *, ascii_only: bool) -> tuple[str, str]:
    """Write the state in so many cells, as a sign where there is one."""
    word = (
        sign(entry.state, ascii_only=ascii_only) if cells == 1 else entry.state.value.ljust(cells)
    )
    return word, _STATE_ROLES.get(entry.state, "dim")


def _labelled(eta: str) -> str:
    return f"eta {eta}" if eta else ""


def bar_of(entry: RunEntry, cells: int, *, ascii_only: bool) -> tuple[str, str]:
    """Draw how much is done."""
    return (
        (" " * cells, "")
        if entry.share is None
        else (gauge(entry.share, cells, ascii_only=ascii_only), "bar")
    )


def spark_of(entry: RunEntry, cells: int, *, ascii_only: bool) -> Pieces:
    """Draw the reward."""
    text = sparkline(entry.reward, cells, ascii_only=ascii_only) if entry.reward is not None else ""
    return [(c, "odd" if c == BROKEN else "spark") for c in text]
