"""The doctor's report as text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.text import one_line
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MOST = 50
"""Most lines of one part, which may have thousands."""


def doctor_text(found: Mapping[str, Any]) -> str:
    """Return a report, the faults first."""
    versions = found["versions"]
    lines = [
        f"verl-tui {versions['verl-tui']}, Python {versions['python']}, {versions['platform']}"
    ]
    wrong = found["wrong"]
    lines += (
        ["", "nothing stands in the way of reading"]
        if not wrong
        else _part("what is wrong", wrong)
    )
    for run in found["runs"]:
        step = "" if run["step"] is None else f", step {run['step']:,}"
        step += ", steps estimated" if run["steps_estimated"] else ""
        rows = [row for source in run["sources"] for row in _source(source)]
        lines += _part(f"run {run['name']}: {run['state']}{step}", rows)
    passed = [f"{one['path']}: {one['reason']}" for one in found["passed_over"]]
    lines += _part("passed over", passed)
    lines += _part("waiting for", found["waiting"])
    lines += _part("terminal", _terminal(found["terminal"]))
    lines += _part("GPUs", _gpus(found["nvml"]))
    lines += _part("notices of the file system", _notices(found["notices"]))
    lines += _part("configuration", _config(found["config"]))
    lines += _part(
        "packages", [", ".join(f"{k} {v}" for k, v in versions["packages"].items())]
    )
    return "\n".join(lines) + "\n"


def _part(title: str, rows: list[str]) -> list[str]:
    """Return a part with its title, nothing for a part without rows."""
    if not rows:
        return []
    left = len(rows) - _MOST
    more = [f"  and {counted(left, 'more line')}: --json has all"] if left > 0 else []
    return [
        "",
        one_line(title, 1000),
        *(f"  {row}" for row in map(_row, rows[:_MOST])),
        *more,
    ]


def _row(text: str) -> str:
    indent = len(text) - len(text.lstrip())
    return " " * indent + one_line(text, 1000)


def _source(source: Mapping[str, Any]) -> Iterator[str]:
    yield source["path"]
    yield f"  {source['program'] or source['format']}, by {source['evidence']}"
    part = (
        "all of"
        if source["bytes_read"] >= source["size"]
        else f"{source['bytes_read']:,} of"
    )
    records = counted(source["records"], "record")
    yield f"  read {part} {source['size']:,} bytes: {records}, {source['unreadable']:,} unreadable"
    for one in source["unreadable_lines"]:
        yield f"    line {one['line']}: {one['reason']}"
    for said in (source["note"], source["problem"]):
        if said:
            yield f"  {said}"
    for line in (source["entry"] or "").splitlines():
        yield f"    {line}"


def _terminal(terminal: Mapping[str, Any]) -> list[str]:
    here = "" if terminal["is_terminal"] else ", but this is not a terminal"
    variables = " ".join(
        f"{name}={value}" for name, value in terminal["variables"].items()
    )
    return [
        f"{terminal['columns']} x {terminal['rows']} cells{here}",
        f"colours: {terminal['colours']}; characters: {terminal['characters']}; "
        f"mouse: {terminal['mouse']}",
        *([f"inside {terminal['inside']}"] if terminal["inside"] else []),
        *([variables] if variables else []),
    ]


def _gpus(nvml: Mapping[str, Any]) -> list[str]:
    if nvml["problem"]:
        return [nvml["problem"]]
    devices = [
        f"{one['index']}: {one['name']}" + (f", {one['fault']}" if one["fault"] else "")
        for one in nvml["devices"]
    ]
    return [f"driver {nvml['driver'] or 'of unknown version'}", *devices]


def _notices(notices: Mapping[str, Any]) -> list[str]:
    limits = ", ".join(f"{name} {value:,}" for name, value in notices["limits"].items())
    return [notices["problem"] or "they come", *([limits] if limits else [])]


def _config(config: Mapping[str, Any]) -> list[str]:
    there = "" if config["exists"] else " (does not exist)"
    changes = [f"{name} = {value}" for name, value in config["changes"].items()]
    said = [config["problem"]] if config["problem"] else []
    return [
        f"{config['path']}{there}",
        *said,
        *(changes or ["everything as by default"]),
    ]
