"""Runs compared with a baseline: as data, as lines for people, and as an exit code for CI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.comparison.outcomes import KINDS
from verl_tui.plain_data import plain
from verl_tui.text import one_line
from verl_tui.words import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from verl_tui.comparison.bands import Against

HEALTHY, WARNING, CRITICAL, NOTHING_READABLE = 0, 1, 2, 3
"""Exit codes of `check`."""
_NAMED = 5
"""Most runs of a baseline that are named."""


def against_data(held: Against) -> dict[str, Any]:
    """Return a run's comparison with a baseline, ready for JSON."""
    found: dict[str, Any] = plain(held)
    return found


def gate_code(against: Mapping[str, Any]) -> int:
    """Return 2 where a figure is worse than its band, 1 where one is outside it in another way or
    is missing, 3 where there was nothing to compare, else 0.
    """
    if all(one["breach"] == "missing" for one in against["figures"]):
        return NOTHING_READABLE
    found = {one["breach"] for one in against["figures"]}
    if "worse" in found:
        return CRITICAL
    if found - {None}:
        return WARNING
    return HEALTHY


def gate_lines(against: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the lines on a run compared with a baseline, each with its severity (empty for none): a
    heading, then a line for each breach.
    """
    yield _heading(against), ""
    figures = against["figures"]
    for one in figures:
        if one["breach"]:
            yield _breach(one), "critical" if one["breach"] == "worse" else "warning"
    kept = [
        f"{KINDS[one['figure']].label} {number(one['value'])} ({_band(one)})"
        for one in figures
        if not one["breach"]
    ]
    if kept:
        yield f"within their bands: {', '.join(kept)}", ""
    reasons: dict[str, list[str]] = {}
    for figure in against["not_compared"]:
        label = KINDS[figure["figure"]].label
        reasons.setdefault(figure["reason"], []).append(label)
    for reason, labels in reasons.items():
        yield f"not compared: {', '.join(labels)} ({one_line(reason, 1000)})", ""


def _heading(against: Mapping[str, Any]) -> str:
    figures = against["figures"]
    names = [one_line(name) for name in against["baseline"]]
    if len(names) > _NAMED:
        names[_NAMED:] = [f"{len(names) - _NAMED} more"]
    step = "" if against["step"] is None else f" at step {against['step']}"
    breaches = sum(one["breach"] is not None for one in figures)
    said = f"{breaches} of {len(figures)} figures outside their bands"
    if gate_code(against) == NOTHING_READABLE:
        said = "there is no figure that both have"
    elif not breaches:
        said = "within all bands"
    return f"against {', '.join(names)}{step}: {said}"


def _band(one: Mapping[str, Any]) -> str:
    return f"{number(one['low'])} to {number(one['high'])}"


def _breach(one: Mapping[str, Any]) -> str:
    label = KINDS[one["figure"]].label
    unit = f" {one['unit']}" if one["unit"] not in ("", "share") else ""
    base = f"baseline {number(one['baseline'])}"
    if one["breach"] == "missing":
        return f"missing: {label}, {base}{unit}"
    side = "below" if one["value"] < one["low"] else "above"
    return f"{one['breach']}: {label} {number(one['value'])} is {side} {_band(one)}{unit} ({base})"
