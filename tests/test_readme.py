"""What the README and the pages beside the code promise is there, and the pictures are those of the
app as it is.
"""

from __future__ import annotations

import importlib
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from inside_textual import quick_pilots

from verl_tui.cli import build_parser
from verl_tui.evaluation import RESERVED
from verl_tui.health.guide_settings import load_guide
from verl_tui.indicators import INDICATORS
from verl_tui.runs.views.state import State
from verl_tui.sources.formats.catalog import FORMATS
from verl_tui.tui.app import SCREENS
from verl_tui.tui.screens.dashboard_layout import PANELS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (
        ROOT / "README.md",
        *sorted(ROOT.glob(".github/*.md")),
        *sorted(ROOT.glob("verl_tui/**/README.md")),
        *sorted(ROOT.glob("tests/**/README.md")),
    )
}
README = PAGES["README.md"]
ARCHITECTURE = PAGES["verl_tui/README.md"]
SCREENS_AND_KEYS = PAGES["verl_tui/tui/README.md"]
FORMATS_IN = ("README.md", "verl_tui/sources/README.md")
FOLDERS = [
    f"verl_tui/{path.parent.name}" for path in ROOT.glob("verl_tui/*/__init__.py")
]


def anchors(page: str) -> set[str]:
    """The anchors that GitHub gives to a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    }


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 250


NAMED = [
    *(("verl_tui/health/README.md", f"`{rule.id}`") for rule in load_guide().rules),
    *(("verl_tui/commands/README.md", f"`{name}`") for name in INDICATORS),
    *(("verl_tui/commands/README.md", f'"{state.value}"') for state in State),
    *(("verl_tui/runs/README.md", f"`{state.value}`") for state in State),
    *((page, f"| {one.name} |") for page in FORMATS_IN for one in FORMATS),
    *(("verl_tui/sources/README.md", f"`{key[8:]}`") for key in sorted(RESERVED)),
    *(("verl_tui/README.md", f"`{folder}`") for folder in FOLDERS),
]


def test_what_there_is_is_named():
    """Rules, indicators, states, formats and folders."""
    missing = [f"{page}: {word}" for page, word in NAMED if word not in PAGES[page]]
    assert not missing, "rows are missing:\n" + "\n".join(missing)


def test_every_command_is_listed():
    usage = build_parser().format_help()
    commands = set(re.findall(r"^ {4}verl-tui ([a-z]+)", README, re.MULTILINE))
    some = {"check", "guard", "export", "replay", "guide", "config", "demo", "web"}
    assert some <= commands
    assert all(command in usage for command in commands)


@pytest.mark.parametrize("screen", SCREENS.values(), ids=SCREENS)
def test_every_screen_is_in_the_table_of_keys_as_it_describes_itself(screen):
    module = sys.modules[screen.kind.__module__]
    words = " ".join(module.__doc__.split()).removesuffix(".")
    keys = " ".join(f"`{key}`" for key in screen.key.split(","))
    row = f"| {keys} | {words[0].lower()}{words[1:]} |"
    missing = row not in SCREENS_AND_KEYS.splitlines()
    assert not missing, f"verl_tui/tui/README.md needs this row:\n{row}"


def test_the_keys_of_panels_are_in_the_table_of_keys():
    keys = sorted((int(panel.key.removeprefix("f")), panel.words) for panel in PANELS)
    names = ", ".join(
        words if words[1].isupper() else words.lower() for _, words in keys
    )
    row = f"| `f{keys[0][0]}` … `f{keys[-1][0]}` | {names} |"
    assert row in SCREENS_AND_KEYS.splitlines()


def test_the_architecture_names_what_is_there():
    for path in sorted(set(re.findall(r"`((?:verl_tui|tests)/[^`…]*)`", ARCHITECTURE))):
        assert (ROOT / path).exists(), path
    code = "".join(one.read_text() for one in (ROOT / "verl_tui").rglob("*.py"))
    for kind, method in re.findall(r"`([A-Z]\w+)\.(\w+)", ARCHITECTURE):
        assert f"class {kind}" in code, kind
        assert f"def {method}(" in code, method


@pytest.mark.parametrize("page", PAGES)
def test_links_and_pictures_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)\s]+)\)", PAGES[page])
    for link in links:
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), link


def test_the_readme_has_pictures():
    assert len(re.findall(r"!\[[^\]]+\]\([^)]+\.svg\)", README)) >= 5


def test_the_recording_is_small_and_plays_without_scripts():
    svg = (ROOT / "screenshots" / "demo.svg").read_text(encoding="utf-8")
    assert len(svg.encode()) < 600_000
    assert "<script" not in svg
    assert svg.count("@keyframes") == svg.count('class="f"') > 10


@pytest.mark.thorough
@pytest.mark.pictures
@pytest.mark.timeout(600)
def test_pictures_are_not_stale(in_utc, monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT / "screenshots")
    monkeypatch.setattr(sys, "argv", ["make.py", "--check"])
    with quick_pilots():
        code = importlib.import_module("make").main()
    assert code == 0, capsys.readouterr().out


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the time zone of the pictures, which else lasts until the tests end."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()
