"""The screen of all samples of a step: opening, moving, filter, search, order."""

from __future__ import annotations

import pytest
from inside_textual import notices
from sample_dumps import at, row, screen, start, type_filter, write, write_dumped_run
from textual.widgets import Input
from watching import check_layout, dashboard, lines, loaded, press, settle, text, until

from verl_tui.tui.panels.samples import DocumentRows, SamplesPanel
from verl_tui.tui.screens.samples import SamplesScreen


@pytest.fixture
def run(tmp_path):
    """A run with dumps of samples."""
    return write_dumped_run(tmp_path)


# -- opening ---------------------------------------------------------------------------------------


async def test_what_is_seen(run):
    app = loaded(run)
    async with app.run_test(size=(140, 45)) as pilot:
        await start(pilot, app)
        shown = lines(app)
        assert "step 4" in shown[0]
        assert "training" in shown[0]
        assert "4 of 4" in shown[0]
        assert "following" in shown[0]
        assert "score 0.5 ± 0.5 · dead groups 0% · 6 samples" in shown[1]
        assert "group 1: 1/3" in shown[2]
        assert "1 of 3 right" in shown[2]
        assert "[✗]✓✗" in shown[2]
        await until(pilot, lambda: "answer 4-5" in text(app))  # a row of the list
        for words in (
            "1 prompt",
            "question 0",
            "2 response",
            "answer 4-0",
            "3 ground truth",
            "42",
            "acc 0",
        ):
            assert words in text(app)
        # Parts are folded and unfolded.
        assert "▸ 1 prompt" in text(app)
        for key, part in [
            ("1", "prompt"),
            ("2", "response"),
            ("3", "ground truth"),
            ("4", "fields"),
        ]:
            was = f"▸ {key} {part}" in text(app)
            await press(pilot, key)
            assert (f"▸ {key} {part}" in text(app)) is not was
        await press(pilot, "enter")  # the part at the top
        assert "▸ 1 prompt" in text(app)
        # In other colours it is the same.
        await press(pilot, "2")
        app.theme = "textual-light"
        await settle(pilot)
        assert "answer 4-0" in text(app)
        check_layout(app)


async def test_opens_where_the_panel_is_and_comes_back_to_where_one_was(run):
    app = loaded(run)
    async with app.run_test(size=(140, 45)) as pilot:
        panel = dashboard(app).query_one(SamplesPanel)
        await press(pilot, "f6")
        await until(pilot, lambda: "answer 4-0" in text(app))
        panel.go_to(2)
        await until(pilot, lambda: "answer 2-0" in text(app))
        await press(pilot, "n", "enter")
        await until(
            pilot,
            lambda: isinstance(app.screen, SamplesScreen) and at(app) == (2, False, 1),
        )
        await press(pilot, "N", "n", "o", "q")
        assert app.screen is dashboard(app)
        assert (panel.browse.shown[0].step, panel.browse.shown[1]) == (1, 2)


# -- moving ----------------------------------------------------------------------------------------


async def test_scrolls_long_texts_to_their_end(run):
    write(
        run / "rollouts",
        4,
        [
            row(
                4,
                0,
                output="answer 4-0 " + " ".join(map(str, range(30_000))) + " the end",
            )
        ],
    )
    app = loaded(run)
    async with app.run_test(size=(100, 30)) as pilot:
        await start(pilot, app)
        document = screen(app).query_one(DocumentRows)
        assert not document.document.complete
        await press(pilot, "pagedown", "j")
        assert document.scroll_offset.y > 10
        assert "f follows" in lines(app)[0]
        await press(pilot, "G")
        await until(pilot, lambda: "the end" in text(app))
        await press(pilot, "g")
        await until(pilot, lambda: "answer 4-0" in text(app))


# -- filter, search, order -------------------------------------------------------------------------


async def test_filters_by_numbers_and_texts(run):
    app = loaded(run)
    async with app.run_test(size=(120, 30)) as pilot:
        await start(pilot, app)
        await type_filter(pilot, "score=1 acc>0.1")
        await until(pilot, lambda: screen(app).browse.listing.visible == [3, 5])
        assert "2 matches" in text(app)
        assert at(app) == (4, False, 3)
        await type_filter(pilot, "4-[23]")
        await until(pilot, lambda: screen(app).browse.listing.visible == [2, 3])
        await press(pilot, "N")
        await until(
            pilot,
            lambda: (
                screen(app).browse.listing.complete
                and screen(app).browse.listing.visible == []
            ),
        )
        assert "no sample matches, esc clears the filter" in text(app)
        await press(pilot, "escape")
        await until(pilot, lambda: len(screen(app).browse.listing.visible) == 6)
        # Samples are sorted by any field.
        await press(pilot, "f")
        await until(pilot, lambda: at(app) == (4, False, 0))
        await until(pilot, lambda: screen(app).browse.listing.complete)
        await press(pilot, "s")
        assert screen(app).browse.listing.visible == [0, 2, 4, 1, 3, 5]
        assert "by score▲" in text(app)
        await press(pilot, "S")
        assert screen(app).browse.listing.visible == [1, 3, 5, 0, 2, 4]
        await press(pilot, "s", "s", "s")
        assert "by acc▼" in text(app)
        assert screen(app).browse.listing.visible == [5, 4, 3, 2, 1, 0]
        await press(pilot, "tab", "j")
        assert at(app) == (4, False, 4)


async def test_goes_from_hit_to_hit_and_unfolds(run):
    write(
        run / "rollouts",
        4,
        [
            row(
                4,
                0,
                input="needle\n" + "x\n" * 30,
                output="answer 4-0\n" * 200 + "a Needle",
            )
        ],
    )
    app = loaded(run)
    async with app.run_test(size=(100, 30)) as pilot:
        await start(pilot, app)
        await type_filter(pilot, "needle")
        await until(pilot, lambda: screen(app).browse.listing.complete)
        await press(pilot, "full_stop")
        await until(
            pilot,
            lambda: (
                "hit 1/2" in text(app) and "needle" in text(app).split("1 prompt")[1]
            ),
        )
        await press(pilot, "full_stop")
        await until(pilot, lambda: "hit 2/2" in text(app) and "a Needle" in text(app))
        await pilot.resize_terminal(90, 28)
        assert "hit 2/2" in text(app)
        await press(pilot, "comma")
        await until(pilot, lambda: "hit 1/2" in text(app))


async def test_what_cannot_be_understood_is_said_and_asked_again(run):
    app = loaded(run)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await start(pilot, app)
        for words, said in (
            ("(", "missing )"),
            ("nofield>1", "no sample has a number called nofield"),
            ("acc>x", "number"),
        ):
            await type_filter(pilot, words)
            assert any(said in words for words in notices(app)), words
            assert isinstance(app.focused, Input)
            await press(pilot, "escape", "n")
            assert at(app) == (4, False, 1)
            await press(pilot, "p")
            app.clear_notifications()
