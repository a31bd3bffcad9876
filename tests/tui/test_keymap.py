"""Keys that the user has given to actions: those that make no sense are reported, and cost nothing
else.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import MappingProxyType

import pytest
from inside_textual import notices
from watching import NOW, loaded, press, text, write_run

import verl_tui
from verl_tui.config import Config
from verl_tui.tui.keys import keymap, usual_keys

KNOWN = ("quit", "metrics", "pause")


@pytest.mark.parametrize(
    "keys",
    ["q", "q,ctrl+q", "space", "question_mark", "plus", "f12", "shift+left", "é", "A"],
)
def test_keys_that_a_terminal_may_send_are_taken(keys):
    assert keymap({"quit": keys}, KNOWN) == ({"quit": keys}, ())


@pytest.mark.parametrize("keys", ["", "notakey+++", "nosuch", "hypo+x", "q,nosuch"])
def test_others_are_refused(keys):
    found = keymap({"quit": keys, "pause": "x"}, KNOWN)
    assert found.keys == {"pause": "x"}
    assert [sentence.endswith(" is no key") for sentence in found.refused] == [True]


def test_an_action_that_is_not_there_and_a_key_given_twice():
    found = keymap({"pauze": "x", "quit": "m", "metrics": "m,ctrl+x"}, KNOWN)
    assert found.keys == {"quit": "m", "metrics": "m,ctrl+x"}
    assert found.refused == (
        "[keys] pauze: there is no such action; did you mean pause?",
        "[keys] m is given to quit and metrics",
    )


def test_an_action_that_is_left_without_a_key_is_reported():
    usual = {"quit": "q", "help": "question_mark,f1", "pause": "p"}
    assert keymap({"pause": "q", "metrics": "q"}, KNOWN, usual).refused == (
        "[keys] q is given to pause and metrics",
        "[keys] q is given to pause, so quit has no key",
    )
    assert keymap({"pause": "f1"}, KNOWN, usual).refused == ()
    assert keymap({"pause": "q", "quit": "p"}, KNOWN, usual).refused == ()
    assert keymap({"metrics": "q"}, KNOWN, usual).refused == (), (
        "elsewhere it means what it meant"
    )


async def test_the_app_says_so_and_goes_on(tmp_path):
    keys = MappingProxyType({"quit": "nosuch", "pause": "P"})
    app = loaded(write_run(tmp_path, "run"), config=Config(keys=keys))
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await press(pilot, "P")
        assert app.view_at(NOW).paused
        assert notices(app) == ["[keys] quit: nosuch is no key"]
        await press(pilot, "q")
    assert app.return_value == 0


def test_hints_name_the_keys_that_bindings_have():
    folders = (Path(verl_tui.__file__).parent / one for one in ("rendering", "tui"))
    sources = (one.read_text() for folder in folders for one in folder.rglob("*.py"))
    names = {*re.findall(r"keys\[[\"']([a-z_.]+)[\"']\]", "".join(sources))}
    assert {"help", "sources", "metrics.back"} <= names <= usual_keys().keys()


async def test_hints_name_the_keys_that_the_user_has_given(tmp_path):
    keys = MappingProxyType(
        {"help": "f1", "sources": "ctrl+i,I", "health.not_judged": "w"}
    )
    run = write_run(tmp_path, "run", text="{broken\n")
    app = loaded(run, config=Config(keys=keys))
    async with app.run_test(size=(170, 40)) as pilot:
        await pilot.pause()
        shown = text(app)
        assert "f1 help" in shown
        assert "1 unreadable line (ctrl+i)" in shown
        assert "w: why" in shown
        assert "(v: why)" not in shown
        await press(pilot, "p")
        assert "PAUSED, p goes on" in text(app)
