"""Regular expressions that are compiled late."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from verl_tui.patterns import pattern

ALL = """
import importlib, pkgutil, re
import verl_tui.patterns
verl_tui.patterns.pattern = re.compile
for module in pkgutil.walk_packages(verl_tui.__path__, "verl_tui."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


def test_every_pattern_compiles() -> None:
    done = subprocess.run([sys.executable, "-c", ALL], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_pattern_does_what_a_compiled_one_does() -> None:
    late, compiled = (
        make(r"(?P<key>[a-z]+)=(\d+)", re.IGNORECASE) for make in (pattern, re.compile)
    )
    text = "Lr=1, kl=2"
    for _ in range(2):
        assert late.findall(text) == compiled.findall(text)
        assert late.sub(r"\2", text) == compiled.sub(r"\2", text)
        found = late.match(text)
        assert found is not None
        assert found["key"] == "Lr"
    assert (late.pattern, late.groups) == (compiled.pattern, compiled.groups)


def test_a_pattern_that_makes_no_sense_is_reported_by_its_first_use() -> None:
    with pytest.raises(re.error):
        pattern(b"(").search(b"")
