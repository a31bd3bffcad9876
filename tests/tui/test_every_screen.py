"""Every screen at every size, on every amount of data, as a terminal emulator shows it.

A build sees each screen once, on one of the amounts at one of the sizes; with `VERL_TUI_EVERY_SIZE`
set it sees each at each size on each amount, which takes some minutes.
"""

from __future__ import annotations

import gc
import os
import re
from string import printable

import pytest
from amounts import AMOUNTS, monitor
from cut_text import (
    cut_hints,
    cut_rows,
    cut_toasts,
    cut_words,
    texts_in_front,
    words_of,
)
from emulated import check_cells, emulated, emulator, resize
from watching import Typed, check_layout, dashboard, press, quiet, showing

from verl_tui.tui.screens.rows_screen import RowsScreen

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("true_colour")]
LARGE = ((220, 60), (120, 40))
SMALL = ((80, 24), (60, 20), (40, 12), (20, 6))
SIZES = (*LARGE, *SMALL)
SCREENS = {
    "dashboard": "",
    "dashboard, two runs laid over each other": "f2 space j space escape",
    "dashboard, about to filter": "slash",
    "dashboard, filtered to nothing": "slash type:nothing enter",
    "dashboard, cursor": "f3 left left",
    "dashboard, looked at closely": "x + + y s",
    "dashboard, a word in passing": "H",
    "dashboard, a finding": "e",
    "runs": "f2 zoom",
    "charts": "f3 zoom",
    "health": "f4 zoom",
    "health, unfolded": "f4 zoom j space v",
    "GPUs": "f5 zoom",
    "samples, unfolded": "f6 zoom u N",
    "zoomed chart": "enter",
    "zoomed chart, read": "enter left left",
    "zoomed chart, second axis": "enter 2 left",
    "zoomed chart, picking a metric": "enter a r",
    "explorer, charts": "m",
    "explorer, another chart": "m j l",
    "explorer, table": "m v j",
    "explorer, about to filter": "m slash",
    "explorer, filtered to nothing": "m slash type:nothing enter",
    "all samples, list": "o",
    "all samples, sample": "o enter",
    "all samples, about to filter": "o slash",
    "all samples, same prompt": "o a",
    "all samples, one beside another": "o d n d",
    "prompts by steps": "O left d",
    "prompts by steps, of training": "o h",
    "configuration": "c j j",
    "configuration, about to filter": "c slash",
    "difference": "c d",
    "timing": "t",
    "compare": "C",
    "compare, a baseline at the same step": "C l b x",
    "log": "l",
    "log, searched": "l g slash type:step enter n",
    "log, about to search": "l slash",
    "log, wrapped and unfolded": "l w u",
    "log, an alarm": "l E",
    "log, a whole line": "l enter",
    "history": "A",
    "sources": "i",
    "help": "question_mark",
    "help of a screen": "m question_mark",
    "command palette, searched": "ctrl+p type:log",
}
EVERY_SIZE = bool(os.environ.get("VERL_TUI_EVERY_SIZE"))
FRAMES = 10
"""Looks at a screen on a busy machine, until it is as it is to be."""
PARTS = 3 if EVERY_SIZE else 1
"""Tests that the screens are shared among, so that several processes can visit them; each reads the
logs anew, which takes as long as some ten visits.
"""
IN_ASCII = AMOUNTS if EVERY_SIZE else ("huge",)
"""Amounts of which some screens are seen in ASCII and without colours, too."""


@pytest.fixture(scope="session")
def amount_of(tmp_path_factory):
    """Return the runs of an amount, read once."""
    folder, known = tmp_path_factory.mktemp("amounts"), {}

    def read(amount):
        if amount not in known:
            known[amount] = monitor(amount, folder / amount, whole=EVERY_SIZE)
            gc.freeze()  # else all of it is looked at again and again, as garbage
        return known[amount]

    return read


def visits(amount, part):
    """Return screens and the sizes to see them at: first the large ones, where resizing takes
    longest.
    """
    screens = list(enumerate(SCREENS))[part::PARTS]
    if EVERY_SIZE:
        return [(name, SIZES) for _, name in screens]
    found = [
        (name, size)
        for at, name in screens
        if (size := size_of(at // 3 + at % 3, amount)) is not None
    ]
    found.sort(key=lambda visit: min(SIZES.index(visit[1]), len(LARGE)))
    return [(name, [size]) for name, size in found]


def size_of(turn, amount):
    """Return the size to see the screen at whose turn it is, None where others are seen on this
    amount of data.
    """
    if amount != AMOUNTS[turn % len(AMOUNTS)]:
        return None
    if turn // 2 % 3 < len(LARGE) and amount in ("long", "huge"):
        return LARGE[turn // 2 % 3]
    return SMALL[(turn + turn // len(AMOUNTS)) % len(SMALL)]


async def enter(pilot, keys):
    """Go to a screen; a panel that had no room is zoomed already."""
    for key in keys.split():
        if key.startswith("type:"):
            await press(pilot, Typed(key.removeprefix("type:")))
        elif key != "zoom":
            await press(pilot, key)
        elif dashboard(pilot.app).zoomed is None:
            await press(pilot, "z")


async def leave(pilot):
    """Go back to the dashboard as it was."""
    home = dashboard(pilot.app)
    pilot.app.clear_notifications()
    if pilot.app.screen is home:
        await press(pilot, "escape", "0", "escape")
    for _ in range(5):
        if pilot.app.screen is not home:
            await press(pilot, "escape")
    assert pilot.app.screen is home


def problems(app, known):
    """Return what is wrong with the screen in front."""
    found = [*cut_rows(app), *cut_hints(app), *cut_toasts(app)]
    if known is not None:
        found += [
            problem
            for rows in texts_in_front(app)
            for problem in cut_words(rows, known)
        ]
    if isinstance(app.screen, RowsScreen) and not any(
        panel.border_title for panel in app.screen.children
    ):
        found.append("nothing says what this is")
    return [*found, *failure(check_layout, app), *failure(check_cells, app)]


async def lasting(pilot, known):
    """Return what is wrong with the screen in front and stays so: a frame may still be on its
    way.
    """
    for _ in range(FRAMES):
        if not (found := problems(pilot.app, known)):
            break
        await pilot.pause(0.02)
    return found


def failure(check, app):
    """Yield what a check says where it fails: all that is wrong with a screen is to be known at
    once.
    """
    try:
        check(app)
    except AssertionError as error:
        yield str(error)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("amount", AMOUNTS)
async def test_every_screen(amount, part, amount_of, monkeypatch):
    runs = amount_of(amount)
    wrong = await wrong_at_their_sizes(amount, part, runs)
    if amount in IN_ASCII and part == 0:
        monkeypatch.setenv("NO_COLOR", "1")
        wrong += await wrong_in_ascii_and_without_colours(amount, runs)
    assert not wrong, "\n".join(wrong)


async def wrong_at_their_sizes(amount, part, runs):
    """Visit the screens of a part; return what is wrong with them."""
    known = words_of(runs) if amount != "huge" else None
    app, wrong = showing(runs), []
    plan = visits(amount, part)
    async with emulated(app, plan[0][1][0]) as pilot:
        for name, sizes in plan:
            await enter(pilot, SCREENS[name])
            # from that of the screen before: who resizes does so anywhere
            for size in sizes:
                await resize(pilot, size)
                await quiet(pilot)
                wrong += [
                    f"{name} at {size}: {problem}"
                    for problem in await lasting(pilot, known)
                ]
            await leave(pilot)
    return wrong


async def wrong_in_ascii_and_without_colours(amount, runs):
    """Visit some screens in ASCII and without colours; return what is wrong with them."""
    app, wrong = showing(runs, ascii_only=True), []
    async with emulated(app, (60, 20)) as pilot:
        for name in list(SCREENS)[AMOUNTS.index(amount) :: 4 if EVERY_SIZE else 8]:
            await enter(pilot, SCREENS[name])
            await quiet(pilot)
            shown = "\n".join(emulator(app).screen.display)
            wrong += (
                [f"{name}: {''.join(sorted(set(shown) - set(printable)))}"]
                if not shown.isascii()
                else []
            )
            wrong += [
                f"{name}: {style!r} is a colour" for style in colours(emulator(app))
            ]
            await leave(pilot)
    return wrong


def colours(terminal):
    """Return which parts of what was written ask for a colour, since one has looked."""
    written = "".join(terminal.written)
    terminal.written.clear()
    styles = {
        style
        for found in re.findall(r"\x1b\[([0-9;]*)m", written)
        for style in found.split(";")
    }
    return {style for style in styles if re.fullmatch(r"[34][0-8]|9\d|10\d", style)}
