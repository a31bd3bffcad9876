"""Examines some paths: the files found, how they were recognised, down to the line that decided,
how much was read, and what is wrong; as data and as text for people.

The formats' own tests are run again on less and less of the file, so that the evidence shown is
what they really use.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verl_tui.check.data import source_data
from verl_tui.config import Config
from verl_tui.given_files import is_there
from verl_tui.plain_data import Data, plain
from verl_tui.rendering.text.ascii_table import keeps_to_ascii
from verl_tui.runs.run_id import run_id
from verl_tui.runs.views.provenance import has_estimated_steps
from verl_tui.runs.views.state import state, state_words, unread_form
from verl_tui.secrets import hide
from verl_tui.sources.discovery import passed_over
from verl_tui.sources.discovery.probing import beginning
from verl_tui.sources.files import DEEPEST, PACKED, head, is_binary
from verl_tui.sources.formats import catalog
from verl_tui.sources.formats.catalog import FORMATS
from verl_tui.sources.formats.console import reader as console
from verl_tui.sources.formats.console.unknown import NOTE, entry_for
from verl_tui.sources.host.gpus import HANGS, GpuSource, in_time
from verl_tui.text import one_line
from verl_tui.words import counted

if TYPE_CHECKING:
    from verl_tui.monitor import Monitor
    from verl_tui.records import SourceStatus
    from verl_tui.runs.run import Run
    from verl_tui.runs.source_state import SourceState
    from verl_tui.sources.formats.format import Format

_SHOWN = 100
"""Characters shown of a line."""
_BYTES = 8
"""First bytes shown of a binary file."""


def format_evidence(path: Path, named: str) -> str:
    """Return why a file is read as a format.

    Args:
        path: The file or directory.
        named: Name of the format.

    Raises:
        OSError: It cannot be read.
    """
    if path.is_dir():
        return "its name, and the names of the files in it"
    format = next((one for one in FORMATS if one.name == named), None)
    if format is None:
        return "its name"
    begin = beginning(path)[0]
    if format.matches(path, begin):
        return _by_beginning(path, begin, format)
    found = _by_rest(path, len(begin)) if format is console else ""
    stated = f"you named it: its beginning fits no format, so it is read as {named}"
    return found or stated


def _by_beginning(path: Path, begin: bytes, format: Format) -> str:
    if format.matches(path, b""):
        return f"its name: {one_line(path.name)}"
    name = "" if format.matches(path.with_name("a"), begin) else ", and its name"
    if is_binary(begin):
        return f"its first bytes: {begin[:_BYTES].hex(' ')}{name}"
    lines = begin.splitlines(keepends=True)
    low = bisect_left(
        range(len(lines)),
        x=True,
        key=lambda last: format.matches(path, b"".join(lines[: last + 1])),
    )
    if low == len(lines):
        return f"its first {len(begin):,} bytes{name}"
    shown = _excerpt(lines[low])
    if format.matches(path, lines[low]):
        return f"line {low + 1:,}: {shown}{name}"
    return f"lines 1 to {low + 1:,} together, of which the last is: {shown}{name}"


def _by_rest(path: Path, begun: int) -> str:
    """Return why a file is a console though its beginning, of so many bytes, has no step; empty
    where nothing shows it.
    """
    data = head(path, DEEPEST)
    at = 0
    for number, line in enumerate(data.splitlines(keepends=True), 1):
        at += len(line)
        if at > begun and console.matches(path, line):
            return f"line {number:,}: {_excerpt(line)}"
    if console.begins(data):
        return "the first lines of a training, and no step so far"
    if console.shows_bar(data):
        return "a progress bar, and no step so far"
    if console.failed(data, f"{path.parent.name}/{path.name}"):
        return "a start that failed, and no step"
    return f"a step behind its first {DEEPEST:,} bytes" if len(data) == DEEPEST else ""


def _excerpt(line: bytes) -> str:
    return f"`{hide(one_line(line.decode('utf-8', 'replace'), _SHOWN))}`"


VERSION = 1
"""Version of the report's schema: grows when a field is removed or changes its meaning."""
_MOST_LINES = 3
"""Number of unreadable lines listed for each source, the last ones."""
_USUAL = frozenset({
    passed_over.UNKNOWN, PACKED, passed_over.UNSURE, passed_over.NO_STEP,
})  # fmt: skip
"""Reasons for which files are passed over without anything being wrong."""


def examine(monitor: Monitor, now: float) -> Data:
    """Return what was found, and why it is read as it is.

    Args:
        monitor: Has read.
        now: Seconds since the epoch.
    """
    unreached = [address.sentence for address in monitor.unreached]
    return {
        "runs": [_run(run, now) for run in monitor.runs.values()],
        "passed_over": [one._asdict() for one in monitor.passed],
        "not_found": list(monitor.problems),
        "waiting": [*unreached, *monitor.waiting],
    }


def changes(config: Config) -> Data:
    """Return the settings that differ from their defaults."""
    usual = Config()
    return {
        name: plain(dict(one) if isinstance(one, Mapping) else one)
        for name, one in vars(config).items()
        if one != getattr(usual, name)
    }


def wrong(found: Data) -> list[str]:
    """Return a sentence for everything in a report that is wrong."""
    parts = ("config", "notices")
    sentences = [
        f"{part}: {found[part]['problem']}" for part in parts if found[part]["problem"]
    ]
    sentences += found["not_found"]
    sentences += [
        f"{one['path']}: {one['reason']}"
        for one in found["passed_over"]
        if one["reason"] not in _USUAL and not one["reason"].startswith(catalog.NO_LOG)
    ]
    for run in found["runs"]:
        if run["unread_form"]:
            sentences.append(f"{run['name']}: {run['unread_form']}")
        sentences += [
            sentence for source in run["sources"] for sentence in _faults(source)
        ]
    return sentences


def _faults(source: Data) -> Iterator[str]:
    if source["problem"]:
        yield f"{source['path']}: {source['problem']}"
    if source["unreadable"]:
        lines = source["unreadable_lines"]
        last = ""
        if lines:
            last = f", the last is line {lines[-1]['line']}: {lines[-1]['reason']}"
        yield f"{source['path']}: {counted(source['unreadable'], 'unreadable line')}{last}"


def _run(run: Run, now: float) -> Data:
    return {
        "name": run.name,
        "id": run_id(run),
        "state": state(run, now).value,
        "step": run.step,
        "steps_estimated": has_estimated_steps(run),
        "unread_form": unread_form(run),
        "sources": [_source(one) for one in run.sources.values()],
    }


def _source(source: SourceState) -> Data:
    status = source.status
    kept: Sequence[Any] = list(source.unreadable)[-_MOST_LINES:]
    return {
        **source_data(status),
        "evidence": _evidence(status.path, status.format),
        "unreadable_lines": [{"line": one.line, "reason": one.reason} for one in kept],
        "bytes_read": status.bytes_read,
        "size": status.size,
        "problem": status.problem,
        "entry": _entry(status),
    }


def _entry(status: SourceStatus) -> str | None:
    """Return the file that would describe the trainer of a console whose steps were guessed."""
    if NOTE not in (status.note or ""):
        return None
    try:
        return entry_for(head(Path(status.path), DEEPEST))
    except OSError:
        return None


def _evidence(path: str, format: str) -> str:
    """Return why a source is read as its format; for an address, that it answers in it."""
    file = Path(path)
    if "*" in file.name:
        return "the names of these files, and their lines"
    try:
        if not file.exists():
            return "what it answers, or what was piped in"
        return format_evidence(file, format)
    except (OSError, ValueError) as error:
        return f"can no longer be determined: {one_line(str(error))}"


# -- as text ---------------------------------------------------------------------------------------


_MOST = 50
"""Most lines of one part, which may have thousands."""
_ABOUT = {
    "terminal": "terminal",
    "nvml": "GPUs",
    "notices": "notices of the file system",
    "config": "configuration",
}


def doctor_text(found: Mapping[str, Any], runs: Mapping[str, Run]) -> str:
    """Return a report, the faults first.

    Args:
        found: What was found.
        runs: Those that it is of.
    """
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
        rows = [row for source in run["sources"] for row in _source_rows(source)]
        words = state_words(runs[run["name"]], run["state"])
        lines += _part(f"run {run['name']}: {words}{step}", rows)
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


def _source_rows(source: Mapping[str, Any]) -> Iterator[str]:
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
    return {"True": "yes", "False": "no", "None": "none"}.get(str(value), str(value))


# -- the machine and the terminal ------------------------------------------------------------------


_INOTIFY = Path("/proc/sys/fs/inotify")
_LIMITS = ("max_user_watches", "max_user_instances", "max_queued_events")
_VARIABLES = ("TERM", "COLORTERM", "TERM_PROGRAM", "NO_COLOR", "LANG", "LC_ALL")
_COLOURS: Mapping[str | None, str] = {
    None: "none",
    "standard": "16",
    "256": "256",
    "truecolor": "16 million",
}


def terminal(config: Config, environment: Mapping[str, str] = os.environ) -> Data:
    """Return what the terminal can show, and what it is asked to."""
    from rich.console import Console

    size = shutil.get_terminal_size()
    system = Console(force_terminal=True, _environ=environment).color_system
    dumb = environment.get("TERM") in ("dumb", "unknown")
    return {
        "is_terminal": sys.stdin.isatty() and sys.stdout.isatty(),
        "columns": size.columns,
        "rows": size.lines,
        "colours": "none" if dumb or environment.get("NO_COLOR") else _COLOURS[system],
        "characters": "ASCII"
        if keeps_to_ascii(config.ascii, environment)
        else "Unicode, braille",
        "mouse": "reported" if config.mouse and not dumb else "left to the terminal",
        "inside": _inside(environment),
        "variables": {
            name: environment[name] for name in _VARIABLES if name in environment
        },
    }


def _inside(environment: Mapping[str, str]) -> str | None:
    """Return the multiplexer in which it runs, and whether that lets notifications through."""
    if environment.get("TMUX"):
        passes = _passthrough()
        return "tmux" + (f", allow-passthrough {passes}" if passes else "")
    return "screen" if environment.get("STY") else None


def _passthrough() -> str:
    try:
        done = subprocess.run(
            ["tmux", "show", "-gv", "allow-passthrough"],  # noqa: S607 - the user's own
            capture_output=True,
            timeout=2,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return one_line(done.stdout.decode("utf-8", "replace"), 40)


def nvml(now: float) -> Data:
    """Return the NVIDIA driver and devices, or why there are none."""
    return in_time(lambda: _nvml(now)) or {
        "problem": HANGS,
        "driver": None,
        "devices": [],
    }


def _nvml(now: float) -> Data:
    import pynvml

    source = GpuSource()
    reading = source.read(now)
    driver = None
    if reading.problem is None:
        with suppress(pynvml.NVMLError):
            driver = one_line(str(pynvml.nvmlSystemGetDriverVersion()), 40)
    source.close()
    devices = [
        {"index": gpu.index, "name": gpu.name, "fault": gpu.fault or None}
        for gpu in reading.gpus
    ]
    return {"problem": reading.problem, "driver": driver, "devices": devices}


def notices_folder(paths: Sequence[str]) -> Path:
    """Return the directory in which change notices are tested: the first of the paths that is one,
    or its parent.
    """
    path = next(filter(is_there, map(Path, paths)), Path())
    return path if path.is_dir() else path.parent


def change_notices(folder: Path) -> Data:
    """Return whether the file system tells of changes in a directory, and the limits on that."""
    import watchfiles

    limits: dict[str, int] = {}
    for name in _LIMITS:
        with suppress(OSError, ValueError):
            limits[name] = int((_INOTIFY / name).read_text())
    problem = None
    try:
        watching = watchfiles.watch(
            folder,
            rust_timeout=1,
            yield_on_timeout=True,
            debounce=1,
            step=1,
            recursive=False,
        )
        next(watching)
    except (OSError, RuntimeError, ValueError) as error:
        problem = (
            f"{one_line(str(error), 200)}; files are looked at once a second instead"
        )
    return {"problem": problem, "limits": limits}
