"""What the README promises is there, and its pictures are those of the app as it is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from verl_tui.health import load_guide
from verl_tui.indicators import INDICATORS
from verl_tui.runs.views.state import State
from verl_tui.sources.formats import FORMATS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("rule", sorted({rule.id for rule in load_guide().rules}))
def test_every_rule_is_named(rule):
    assert f"`{rule}`" in README


@pytest.mark.parametrize("word", [*INDICATORS, *(state.value for state in State)])
def test_public_names_are_documented(word):
    assert f"`{word}`" in README


@pytest.mark.parametrize("name", [format_.name for format_ in FORMATS])
def test_every_format_is_named(name):
    assert f"| {name} |" in README


def test_pictures_exist():
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README)
    assert pictures
    assert all((ROOT / picture).is_file() for picture in pictures)


def test_the_recording_is_small_and_plays_without_scripts():
    svg = (ROOT / "screenshots" / "demo.svg").read_text(encoding="utf-8")
    assert len(svg.encode()) < 600_000
    assert "<script" not in svg
    assert svg.count("@keyframes") == svg.count('class="f"') > 10


def test_pictures_are_not_stale():
    made = subprocess.run(
        [sys.executable, ROOT / "screenshots" / "make.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
