"""Why the verdict is so: opened by its key, from the verdict, by a click; left as it was."""

from __future__ import annotations

from watching import dashboard, lines, press, settle, showing, text

from verl_tui.tui.screens.explain import ExplainScreen


async def test_the_verdict_opens_why_it_is_so(collapse):
    app = showing(collapse)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        focus = app.screen.focused
        for keys in (["X"], ["shift+tab", "enter"]):
            await press(pilot, *keys)
            assert isinstance(app.screen, ExplainScreen), keys
            shown = text(app)
            for words in (
                "why of",
                "critical",
                "policy collapse",
                "steps later",
                "next",
            ):
                assert words in shown, (keys, shown)
            assert "closes" in lines(app)[-1]
            await press(pilot, "escape")
            assert app.screen is dashboard(app)
        await press(pilot, "escape")
        assert app.screen.focused is focus, "and esc leaves the verdict"
        await pilot.click("#verdict", offset=(5, 0))
        await settle(pilot)
        assert isinstance(app.screen, ExplainScreen)
        await press(pilot, "]")
        assert isinstance(app.screen, ExplainScreen)
        await press(pilot, "q")
        assert app.screen is dashboard(app)
