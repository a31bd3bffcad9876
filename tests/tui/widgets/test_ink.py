"""Styles of roles: worked out when they are asked for, forgotten with the theme, known by name only."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.strip import Strip

from verl_tui.tui.widgets.line import Line


class Inks(App[None]):
    def compose(self) -> ComposeResult:
        yield Line()


async def test_a_role_has_the_style_of_its_class_until_the_theme_changes() -> None:
    app = Inks()
    async with app.run_test() as pilot:
        line = app.query_one(Line)
        before = line.ink("critical")
        assert before.bold
        assert before is line.ink("critical")
        app.theme = "solarized-light"
        await pilot.pause()
        assert line.ink("critical").color != before.color
        assert set(line.inks) == set(Line.INKS)


async def test_a_row_is_written_in_the_colours_of_its_roles() -> None:
    app = Inks()
    async with app.run_test():
        line = app.query_one(Line)
        strip = line.inked([("a", "strong"), ("", "dim"), ("b", "")])
        assert isinstance(strip, Strip)
        assert [(segment.text, segment.style) for segment in strip] == [("a", line.ink("strong")), ("b", None)]


async def test_a_role_that_is_not_there_is_no_plain_text() -> None:
    app = Inks()
    async with app.run_test():
        with pytest.raises(KeyError, match="strnog"):
            app.query_one(Line).ink("strnog")
