"""Regular expressions that are compiled late, and whose work grows with the text alone."""

from __future__ import annotations

import functools
import importlib
import math
import pkgutil
import re
import time
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest
import regex
from fuzz.pumped import pumped

import verl_tui
from verl_tui.patterns import NamePattern, pattern
from verl_tui.rendering.metrics.listing import parse_filter as metric_filter
from verl_tui.rendering.samples.query import parse_query as sample_query
from verl_tui.rendering.text.search import Search
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType


def test_a_pattern_does_what_a_compiled_one_does():
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


def test_a_pattern_that_makes_no_sense_is_reported_by_its_first_use():
    with pytest.raises(re.error):
        pattern(b"(").search(b"")


_ANCHORED = {"match", "fullmatch"}
_METHODS = re.compile(r"\.(fullmatch|match|search|sub|finditer|findall|split)\(")
_SMALL, _LARGE, _TIMES = 300, 4_000, 4
_STEP = 1e-7
"""Seconds for a character that no work takes which grows with the square of 1,200 characters: they
are 600 steps each, of a nanosecond at least.
"""
_FORMS = (re.Pattern, regex.Pattern, type(pattern("")))
_HOLDERS = (*_FORMS, tuple, list, dict)


def _within(value: Any) -> Iterator[re.Pattern[Any]]:
    """Yield the expressions in a value of a module."""
    if isinstance(value, _FORMS):
        yield value
    elif isinstance(value, dict):
        yield from _within([*value.values()])
    elif isinstance(value, tuple | list):
        for one in value:
            if isinstance(one, _HOLDERS):
                yield from _within(one)


def _all() -> Iterator[tuple[ModuleType, str, re.Pattern[Any]]]:
    for found in pkgutil.walk_packages(verl_tui.__path__, "verl_tui."):
        if not found.name.endswith(("__main__", *TYPED)):
            module = importlib.import_module(found.name)
            for name, value in vars(module).items():
                yield from ((module, name, form) for form in _within(value))


TYPED = (
    "rendering.metrics.listing",
    "rendering.text.search",
    "rendering.samples.query",
)
"""Modules whose expressions take apart what users type, which may not be long."""
PARTS = sorted(found.name for found in pkgutil.iter_modules(verl_tui.__path__))


@functools.cache
def _expressions() -> Mapping[str, list[tuple[ModuleType, str, re.Pattern[Any]]]]:
    """Return the expressions of each part, with their modules and names: each of them once."""
    parts = defaultdict(list)
    for one in {id(one[2]): one for one in _all()}.values():
        parts[one[0].__name__.split(".")[1]].append(one)
    return parts


@functools.cache
def _called(module: ModuleType | None) -> Mapping[str, set[str]]:
    """Return the methods that the code of a module, or of all, calls by the name before the dot;
    those of expressions by no name.
    """
    folder = Path(verl_tui.__file__).parent
    files = folder.rglob("*.py") if module is None else [Path(str(module.__file__))]
    code = "\n".join(file.read_text(encoding="utf-8") for file in files)
    calls = defaultdict(set, {"": set(_METHODS.findall(code))})
    for name, method in re.findall(r"\b(\w+)\.(\w+)\(", code):
        calls[name].add(method)
    return calls


def _used(module: ModuleType, name: str) -> set[str]:
    """Return the methods that are called of an expression, or of any in its module where its name does not tell."""
    calls = _called(module if name.startswith("_") else None)
    return calls.get(name) or _called(module)[""]


def _work(form: re.Pattern[Any], text: Any, times: int, *, anchored: bool) -> float:
    """Return the processor's time for so many searches in a text."""
    start = time.thread_time()
    for _ in range(times):
        if anchored:
            form.match(text)
            form.fullmatch(text)
        else:
            for _found in form.finditer(text):
                pass
    return time.thread_time() - start


def _is_linear(
    form: re.Pattern[Any],
    text: Any,
    *,
    anchored: bool,
    small: int = _SMALL,
    tries: int = 40,
) -> bool:
    # A text against its quarter read four times: as long where the work is linear, four times as
    # long where it is quadratic. A busy machine slows each measurement, but not all of them; one
    # that becomes slower meanwhile slows what is measured in turn alike.
    whole = quarters = math.inf
    ratios = []
    for _ in range(tries):
        one = _work(form, text, 1, anchored=anchored)
        if one < len(text) * _STEP:
            return True
        other = _work(form, text[:small] + text[-1:], _TIMES, anchored=anchored)
        whole = min(whole, one)
        quarters = min(quarters, other)
        if whole < 2 * quarters:
            return True
        ratios.append(one / other if other else math.inf)
    return median(ratios) < 2


@pytest.mark.parametrize("part", PARTS)
def test_work_grows_with_a_text_and_no_faster(part):
    for module, name, form in _expressions()[part]:
        anchored = _used(module, name) <= _ANCHORED
        suspects = {
            at: _work(form, text, 1, anchored=anchored)
            for at, text in enumerate(pumped(form, _SMALL * _TIMES))
            if not _is_linear(form, text, anchored=anchored, tries=2)
        }
        if suspects:
            # A repetition that is bounded may show its bound in long texts only.
            slowest = max(suspects, key=suspects.__getitem__)
            larger = [*pumped(form, _LARGE * _TIMES)][slowest]
            assert _is_linear(form, larger, anchored=anchored, small=_LARGE), (
                f"{module.__name__}.{name}: {larger[:80]!r}"
            )


def _said(table: Any) -> Iterator[str]:
    """Yield the expressions in a table of knowledge."""
    if isinstance(table, list):
        for one in table:
            yield from _said(one)
    elif isinstance(table, dict):
        for name, value in table.items():
            if name in {"match", "begins", "goes_on", "ends", "when", "functions"}:
                yield from [value] if isinstance(value, str) else value
            else:
                yield from _said(value)


@pytest.mark.parametrize(
    "name", ["causes.toml", "events.toml", "phases.toml", "words.toml"]
)
def test_work_grows_no_faster_by_what_tables_say(name):
    for path in Path(verl_tui.__file__).parent.rglob(name):
        table = toml_table(str(path), name)
        for said in _said(table):
            shell, code = table.get("shell", ""), table.get("code", "")
            form = re.compile(said.replace("{shell}", shell).replace("{code}", code))
            for text in pumped(form, _SMALL * _TIMES):
                assert _is_linear(form, text, anchored=False), said


def test_no_name_is_longer_than_names_are():
    form = NamePattern(r"(?:.*/)?reward")
    assert form.fullmatch("a/" * 190 + "reward") is not None
    assert form.fullmatch("a/" * 100_000 + "reward") is None


@pytest.mark.parametrize("taken", [Search, metric_filter, sample_query])
def test_what_is_typed_is_not_taken_apart_where_it_is_long(taken):
    taken("/" + "a" * 900)
    with pytest.raises(ValueError, match="longer than 1,000 characters"):
        taken("/" * 200_000)
