"""Styles of roles: worked out when they are asked for, forgotten with the theme, known by name
only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.app import App, ComposeResult
from textual.strip import Strip
from watching import press, showing

from verl_tui.tui.terminal.styles import RoleStyled
from verl_tui.tui.widgets.line import Line
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.monitor import Monitor


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
        assert set(line.role_styles) == set(Line.STYLED_ROLES)


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


def kinds(of: type[RoleStyled]) -> Iterator[type[RoleStyled]]:
    """Yield all kinds of inked widgets there are."""
    for kind in of.__subclasses__():
        yield kind
        yield from kinds(kind)


async def test_what_a_role_looks_like_depends_on_its_kind_of_widget_only(
    demo: Monitor,
) -> None:
    """Else the style of one widget would not do for another."""
    app = showing(demo)
    async with app.run_test(size=(40, 12)) as pilot:
        for key in "mlCctiAo":  # each screen brings its rules
            await press(pilot, key, "escape", "escape")
        roles = {
            f"{kind.PREFIX}--{role}"
            for kind in kinds(RoleStyled)
            for role in kind.STYLED_ROLES
        }
        chains = [
            selectors.selectors
            for rule in app.stylesheet.rules
            for selectors in rule.selector_set
        ]
        ours = [chain for chain in chains if chain[-1].name in roles]
        assert {Line.PREFIX, Rows.PREFIX, "chart", "log"} <= {
            chain[-1].name.split("--")[0] for chain in ours
        }
        for owner, role in ours:
            assert owner.name in {kind.__name__ for kind in kinds(RoleStyled)}, role
            assert owner.pseudo_classes <= {"ansi", "light", "dark"}, role
