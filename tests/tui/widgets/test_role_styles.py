"""Styles of roles: worked out when they are asked for, forgotten with the theme, known by name
only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest
from textual.app import App, ComposeResult
from textual.color import Color
from textual.strip import Strip

from verl_tui.rendering.charts.roles import ROLES
from verl_tui.rendering.text.hues import Hue
from verl_tui.tui.terminal.themes import PLAIN
from verl_tui.tui.widgets.line import Line
from verl_tui.tui.widgets.plot import Plot
from verl_tui.tui.widgets.role_styled import RoleStyled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from verl_tui.tui.widgets.role_styled import Looks


class Inks(App[None]):
    def compose(self) -> ComposeResult:
        yield Line()


async def test_a_role_has_the_style_of_its_class_until_the_theme_changes() -> None:
    app = Inks()
    async with app.run_test() as pilot:
        line = app.query_one(Line)
        before = line.role_style("critical")
        assert before.bold
        assert before is line.role_style("critical")
        app.theme = "solarized-light"
        await pilot.pause()
        assert line.role_style("critical").color != before.color
        assert set(line.role_styles) == set(Line.LOOKS)


async def test_a_row_is_written_in_the_colours_of_its_roles() -> None:
    app = Inks()
    async with app.run_test():
        line = app.query_one(Line)
        strip = line.inked([("a", "strong"), ("", "dim"), ("b", "")])
        assert isinstance(strip, Strip)
        assert [(segment.text, segment.style) for segment in strip] == [
            ("a", line.role_style("strong")),
            ("b", None),
        ]


async def test_a_role_that_is_not_there_is_no_plain_text() -> None:
    app = Inks()
    async with app.run_test():
        with pytest.raises(KeyError, match="strnog"):
            app.query_one(Line).role_style("strnog")


async def test_on_another_ground_a_role_is_another_style() -> None:
    app = Inks()
    async with app.run_test() as pilot:
        here, there = app.query_one(Line), Line()
        there.styles.background = "#123456"
        await app.mount(there)
        await pilot.pause()
        assert here.role_style("critical").color == there.role_style("critical").color
        assert (
            here.role_style("critical").bgcolor != there.role_style("critical").bgcolor
        )


class Gauges(RoleStyled):
    LOOKS: ClassVar[Looks] = {
        "gauge": "bold $text-primary on $foreground 15%",
        "faint": "$primary 60%",
        "run": Hue("#A8E4F0", "#0C6CC0", "ansi_cyan"),
    }
    ANSI_LOOKS: ClassVar[Mapping[str, str]] = {
        "gauge": "$text-primary on ansi_bright_black"
    }


class Gauged(App[None]):
    def compose(self) -> ComposeResult:
        yield Gauges()


async def test_a_look_is_a_colour_for_each_ground_or_words_of_markup() -> None:
    app = Gauged()
    app.register_theme(PLAIN)
    shown = {}
    async with app.run_test() as pilot:
        widget = app.query_one(Gauges)
        for theme in ("textual-dark", "textual-light", PLAIN.name):
            app.theme = theme
            await pilot.pause()
            shown[theme] = widget.role_styles
    dark, light, ansi = shown.values()
    assert str(dark["run"]).startswith("#a8e4f0 on ")
    assert str(light["run"]).startswith("#0c6cc0 on ")
    assert ansi["run"].color == Color.parse("ansi_cyan").rich_color
    assert dark["gauge"].bold
    assert dark["gauge"].bgcolor != dark["faint"].bgcolor
    assert ansi["gauge"].bgcolor == Color.parse("ansi_bright_black").rich_color
    assert not ansi["gauge"].bold
    assert dark["faint"].color != light["faint"].color


def test_every_role_of_a_chart_has_a_look() -> None:
    """One without would be drawn as plain text."""
    assert {*ROLES} == {*Plot.LOOKS}
