"""The doctor's report as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from verl_tui.text import one_line
from verl_tui.words import counted

_MOST = 50
"""Most lines of one part, which may have thousands."""
_ABOUT = {
    "terminal": "terminal",
    "nvml": "GPUs",
    "notices": "notices of the file system",
    "config": "configuration",
}


def doctor_text(found: Mapping[str, Any]) -> str:
    """Return a report, the faults first."""
    versions = found["versions"]
    lines = [
        f"verl-tui {versions['verl-tui']}, Python {versions['python']}, {versions['platform']}"
    ]
    lines += _part("what is wrong", found["wrong"]) or [
        "",
        "nothing stands in the way of reading",
    ]
    for run in found["runs"]:
        step = "" if run["step"] is None else f", step {run['step']:,}"
        step += ", steps estimated" if run["steps_estimated"] else ""
        rows = [row for source in run["sources"] for row in _source(source)]
        lines += _part(f"run {run['name']}: {run['state']}{step}", rows)
    passed = [f"{one['path']}: {one['reason']}" for one in found["passed_over"]]
    lines += _part("passed over", passed)
    lines += _part("waiting for", found["waiting"])
    for part, title in _ABOUT.items():
        lines += _part(title, list(_facts(found[part])))
    lines += _part("packages", [_value(versions["packages"])])
    return "\n".join(lines) + "\n"


def _part(title: str, rows: Sequence[str]) -> list[str]:
    """Return a part with its title, nothing for a part without rows."""
    shown = [f"  {_row(row)}" for row in rows[:_MOST]]
    if len(rows) > _MOST:
        left = counted(len(rows) - _MOST, "more line")
        shown.append(f"  and {left}: --json has all")
    return ["", one_line(title, 1000), *shown] if rows else []


def _row(text: str) -> str:
    indent = len(text) - len(text.lstrip())
    return " " * indent + one_line(text, 1000)


def _source(source: Mapping[str, Any]) -> Iterator[str]:
    yield source["path"]
    yield f"  {source['program'] or source['format']}, by {source['evidence']}"
    read, size = source["bytes_read"], source["size"]
    part = "all of" if read >= size else f"{read:,} of"
    records = counted(source["records"], "record")
    yield f"  read {part} {size:,} bytes: {records}, {source['unreadable']:,} unreadable"
    for one in source["unreadable_lines"]:
        yield f"    line {one['line']}: {one['reason']}"
    yield from (f"  {said}" for said in (source["note"], source["problem"]) if said)
    yield from (f"    {line}" for line in (source["entry"] or "").splitlines())


def _facts(about: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is known of a part of the machine, a fact a line."""
    for name, value in about.items():
        if value not in (None, "", {}, []):
            yield f"{name.replace('_', ' ')}: {_value(value)}"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_value(one)}" for name, one in value.items())
    if isinstance(value, list):
        return "; ".join(map(_value, value))
    words = {"True": "yes", "False": "no", "None": "none"}
    return words.get(str(value), str(value))
