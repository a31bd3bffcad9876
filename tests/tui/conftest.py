"""Fixtures for the tests of the whole app."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from textual.css.stylesheet import Stylesheet
from watching import NOW

from verl_tui.config import Config
from verl_tui.demo import Simulation
from verl_tui.monitor import load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from verl_tui.monitor import Monitor


@pytest.fixture(autouse=True)
def colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same colours and characters whatever the machine's settings are."""
    for name in ("NO_COLOR", "FORCE_COLOR", "LC_ALL", "LC_CTYPE", "LANG", "VERL_TUI_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VERL_TUI_STATE", "")  # what the user has pinned is no part of a test


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's three runs from beginning to end, the last step just made."""
    directory = tmp_path_factory.mktemp("demo")
    Simulation(directory, 7, lambda: NOW).write_all()
    for path in directory.rglob("*"):
        os.utime(path, (NOW, NOW))
    return directory


@pytest.fixture(scope="session")
def demo(simulated: Path) -> Monitor:
    """The demo's three runs, read once: nothing in an app without a reading changes them."""
    return load([str(simulated)], Config(), NOW)


@pytest.fixture(scope="session")
def collapse(simulated: Path) -> Monitor:
    """The demo's run that collapses."""
    return load([str(simulated / "run_ppo_collapse")], Config(), NOW)


@pytest.fixture
def apart(collapse: Monitor, monkeypatch: pytest.MonkeyPatch) -> Iterator[Monitor]:
    """The same, with findings of which none follows from another."""
    before = collapse.verdicts["run_ppo_collapse"]
    found = tuple(replace(one, consequence_of=None) for one in before.findings)
    collapse.verdicts["run_ppo_collapse"] = replace(before, findings=found)
    monkeypatch.setattr(collapse, "judge", lambda _now: False)
    yield collapse
    collapse.verdicts["run_ppo_collapse"] = before


@pytest.fixture(autouse=True)
def somewhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be in a directory of the test's own: screenshots and tables go to the current one."""
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))


@pytest.fixture(scope="session", autouse=True)
def stylesheets() -> Iterator[None]:
    """Read each stylesheet once, not with every app: a seventh of the time of these tests."""
    read, known = Stylesheet._parse_rules, {}

    def once(self: Stylesheet, *source: Any, **options: Any) -> Any:
        key = (tuple(self._variables.items()), source, tuple(options.items()))
        if key not in known:
            known[key] = read(self, *source, **options)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", once)
        yield
