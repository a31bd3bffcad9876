"""The help: sections side by side where there is room, and a search."""

from __future__ import annotations

from watching import (
    Typed,
    check_layout,
    check_shown,
    dashboard,
    lines,
    press,
    showing,
    text,
)


async def test_sections_stand_side_by_side_where_there_is_room(demo):
    app = showing(demo)
    async with app.run_test(size=(160, 45)) as pilot:
        await press(pilot, "f4", "question_mark")
        for size, columns in (((160, 45), 2), ((220, 60), 2), ((100, 30), 1)):
            await pilot.resize_terminal(*size)
            check_layout(app)
            titles = [
                row
                for row in lines(app)
                if row.count("everywhere") + row.count("focus") > 1
            ]
            assert bool(titles) == (columns == 2), size
        # A task is searched for by its name.
        await pilot.resize_terminal(100, 40)
        await press(pilot, "slash", Typed("broke finding"))
        check_shown(app, "find out why it broke", "Next finding")
        assert "Zoom out" not in text(app)
        await pilot.resize_terminal(40, 12)
        await press(pilot, "ctrl+u", Typed("space page meaning"))
        check_shown(
            app, "space, too, is a page down where it ", "has no other meaning "
        )


async def test_the_help_is_searched_and_left_step_by_step(demo):
    app = showing(demo)
    async with app.run_test(size=(100, 30)) as pilot:
        await press(pilot, "question_mark")
        assert "/ searches" in text(app)
        await press(pilot, "slash", *"outliers")
        found = [row for row in lines(app) if "outliers" in row]
        assert any("Y axis with or without outliers" in row for row in found)
        assert "Zoom out" not in text(app)
        assert any("lines" in row and "esc" in row for row in found), (
            "how much, how to leave"
        )
        await press(pilot, *["backspace"] * 8, Typed("entries.open"))
        assert any("Open, or go there" in row for row in lines(app))
        await press(pilot, "ctrl+u", Typed("zzzz"))
        assert "nothing matches" in text(app)
        await press(pilot, "escape")
        assert "All metrics" in text(app)
        await press(pilot, "escape")
        assert app.screen is dashboard(app)
