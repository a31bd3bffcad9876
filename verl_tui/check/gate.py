"""Runs compared with a baseline: as data, as lines for people, and as an exit code for CI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.check.codes import CRITICAL, HEALTHY, NOTHING_READABLE, WARNING
from verl_tui.comparison.outcomes import KINDS
from verl_tui.text import one_line
from verl_tui.words import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.comparison.bands import Against

_NAMED = 5
"""Most runs of a baseline that are named."""


def against_data(held: Against) -> dict[str, Any]:
    """Return a run's comparison with a baseline, ready for JSON."""
    figures = [
        {**figure._asdict(), "breach": figure.breach or None} for figure in held.figures
    ]
    return {
        "baseline": list(held.baseline),
        "step": held.step,
        "last": held.last,
        "figures": figures,
        "not_compared": [figure._asdict() for figure in held.not_held],
    }


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
    code = gate_code(against)
    step = "" if against["step"] is None else f" at step {against['step']}"
    yield f"against {_names(against['baseline'])}{step}: {_summary(against, code)}", ""
    kept = []
    for figure in against["figures"]:
        if not figure["breach"]:
            kept.append(_within(figure))
        elif figure["breach"] == "worse":
            yield _breach(figure), "critical"
        else:
            yield _breach(figure), "warning"
    if kept:
        yield f"within their bands: {', '.join(kept)}", ""
    reasons: dict[str, list[str]] = {}
    for figure in against["not_compared"]:
        label = KINDS[figure["figure"]].label
        reasons.setdefault(figure["reason"], []).append(label)
    for reason, labels in reasons.items():
        yield f"not compared: {', '.join(labels)} ({one_line(reason, 1000)})", ""


def _summary(against: Mapping[str, Any], code: int) -> str:
    if code == NOTHING_READABLE:
        return "there is no figure that both have"
    breaches = sum(one["breach"] is not None for one in against["figures"])
    count = len(against["figures"])
    if not breaches:
        return "within all bands"
    return f"{breaches} of {count} figures outside their bands"


def _breach(one: Mapping[str, Any]) -> str:
    label = KINDS[one["figure"]].label
    band = f"{number(one['low'])} to {number(one['high'])}"
    unit = f" {one['unit']}" if one["unit"] not in ("", "share") else ""
    base = f"baseline {number(one['baseline'])}"
    if one["breach"] == "missing":
        return f"missing: {label}, {base}{unit}"
    side = "below" if one["value"] < one["low"] else "above"
    return f"{one['breach']}: {label} {number(one['value'])} is {side} {band}{unit} ({base})"


def _within(one: Mapping[str, Any]) -> str:
    band = f"{number(one['low'])} to {number(one['high'])}"
    return f"{KINDS[one['figure']].label} {number(one['value'])} ({band})"


def _names(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    shown = [one_line(name) for name in names[:_NAMED]]
    if more > 0:
        shown.append(f"{more} more")
    return ", ".join(shown)
