"""All keys as a page in Markdown, for readers who are not in the app."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.pages import page_table
from verl_tui.tui.app import VerlApp
from verl_tui.tui.keys.actions import usual_keys
from verl_tui.tui.keys.keymap import keymap
from verl_tui.tui.screens.help_sections import sections

if TYPE_CHECKING:
    from collections.abc import Mapping


def all_keys(wanted: Mapping[str, str]) -> str:
    """Return the page, with the user's own keys where these can be taken; a sentence on each other
    comes first.

    Args:
        wanted: Action's name -> keys, as the configuration has them.
    """
    user = keymap(wanted, usual_keys())
    parts = ["# Keys", "Names are for `[keys]` in the configuration.", *user.refused]
    for section in sections(VerlApp, user.keys):
        title = ": ".join(filter(None, (section.task, section.title)))
        parts += [f"## {title[0].upper()}{title[1:]}"]
        parts.append(page_table(("key", "does", "name"), section.rows))
        if section.notes:
            parts.append("\n".join(("```", *section.notes, "```")))
    return "\n\n".join(parts) + "\n"
