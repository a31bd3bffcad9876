"""All keys as a page in Markdown, for readers who are not in the app."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.pages import page_table
from verl_tui.rendering.charts.legend import legend
from verl_tui.tui.app import VerlApp
from verl_tui.tui.keys.key_names import key_name
from verl_tui.tui.keys.keymap import keymap
from verl_tui.tui.keys.kinds import action_names
from verl_tui.tui.keys.tasks import MOVE
from verl_tui.tui.replay_app import ReplayApp
from verl_tui.tui.screens.help.help_rows import (
    FIRST_RUN,
    PALETTE_ROW,
    RUNS_ROW,
    described,
)
from verl_tui.tui.screens.help.sections import KeySection, all_sections

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from textual.binding import Binding

KeyRow = tuple[str, str, str]
"""Keys, what they do, the name of the action."""


def all_keys(wanted: Mapping[str, str]) -> str:
    """Return the page, with the user's own keys where these can be taken; a sentence on each other
    comes first.

    Args:
        wanted: Action's name -> keys, as the configuration has them.
    """
    user = keymap(wanted, action_names())
    parts = ["# Keys", "Names are for `[keys]` in the configuration.", *user.refused]
    for section in all_sections(VerlApp):
        parts += _section(section, user.keys)
    own = [
        binding for binding in described(ReplayApp) if binding not in VerlApp.BINDINGS
    ]
    rows = _rows(own, user.keys)
    parts += ["## In a replay", page_table(("key", "does", "name"), rows)]
    signs = ((entry.sign, entry.means) for entry in legend())
    parts += ["## Signs in charts", page_table(("sign", "means"), signs)]
    return "\n\n".join(parts) + "\n"


def _section(section: KeySection, user: Mapping[str, str]) -> Iterator[str]:
    """Yield the parts of a section; none where it has no keys."""
    declared = section.declared
    rows = [*_rows(_listed(section), user)]
    if declared.title == "everywhere" and declared.task == MOVE:
        rows.append(PALETTE_ROW)
    if not rows:
        return
    task = declared.task.description
    yield f"## {task[0].upper()}{task[1:]}: {declared.title}"
    yield page_table(("key", "does", "name"), rows)
    if declared.notes:
        yield "\n".join(("```", *declared.notes, "```"))


def _listed(section: KeySection) -> Iterator[Binding]:
    """Yield the keys of a section's classes, each name once."""
    known: set[str] = set()
    for kind in section.kinds:
        for binding in [one for one in described(kind) if one.id not in known]:
            if section.lists(binding):
                known |= {binding.id} if binding.id else set()
                yield binding


def _rows(bindings: Iterable[Binding], user: Mapping[str, str]) -> Iterator[KeyRow]:
    for binding in bindings:
        if binding.id == FIRST_RUN:
            yield RUNS_ROW
            continue
        keys = user.get(binding.id or "", binding.key).split(",")
        named = " ".join(key_name(key) for key in keys)
        yield named, binding.description, binding.id or ""
