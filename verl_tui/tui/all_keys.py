"""All keys as a page in Markdown, for readers who are not in the app."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.pages import page_table
from verl_tui.tui.app import VerlApp
from verl_tui.tui.keys.bindings import action_names
from verl_tui.tui.keys.keymap import keymap
from verl_tui.tui.replay_app import ReplayApp
from verl_tui.tui.screens.help_sections import all_sections, own_section, signs_section

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from verl_tui.tui.screens.help_sections import KeySection


def all_keys(wanted: Mapping[str, str]) -> str:
    """Return the page, with the user's own keys where these can be taken; a sentence on each other
    comes first.

    Args:
        wanted: Action's name -> keys, as the configuration has them.
    """
    user = keymap(wanted, action_names())
    parts = ["# Keys", "Names are for `[keys]` in the configuration.", *user.refused]
    for section in all_sections(VerlApp, user.keys):
        task = section.task
        parts += _section(section, f"{task[0].upper()}{task[1:]}: {section.title}")
    parts += _section(own_section(ReplayApp, VerlApp, user.keys), "In a replay")
    signs = [row[:2] for row in signs_section().rows]
    parts += ["## Signs in charts", page_table(("sign", "means"), signs)]
    return "\n\n".join(parts) + "\n"


def _section(section: KeySection, title: str) -> Iterator[str]:
    """Yield the parts of a section."""
    yield f"## {title}"
    yield page_table(("key", "does", "name"), section.rows)
    if section.notes:
        yield "\n".join(("```", *section.notes, "```"))
