"""The two texts that people read first: what the archive is, and what to paste into an issue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.bundle.versions import installed, versions_line
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.bundle.archive import BundledFile
    from verl_tui.bundle.log_ends import LogEnd
    from verl_tui.bundle.versions import StatedVersion

_ERROR_LINES = 25
_OPENING = 3
"""Lines of the report that say how it is, why, and what to do next."""
_NAMED = ("verl", "trl", "torch", "vllm", "sglang", "transformers", "ray", "python")

_README = """\
Evidence on a training run, gathered by `verl-tui bundle`.

summary.md is short and made to be pasted into an issue; the rest is what it rests on:

{contents}

Keys, tokens and passwords are written ***, home directories ~, and names of users and hosts USER,
HOST, EMAIL and IP (unless made with --keep-names). This goes by names and known forms: a secret of
an unknown form under a name that says nothing stays as it is. Samples are in it with --samples
only, except where a training prints them in a way that verl-tui does not know. So look through the
files before you publish them.

Files are bounded: of a log its last lines, of a long table its last steps. Where something is cut
off, its first line or the list above says so.
{problems}"""


def readme(pieces: Sequence[BundledFile], problems: Sequence[str]) -> str:
    """Return a description of the archive and of what it lacks."""
    wide = max(len(piece.name) for piece in pieces)
    contents = "\n".join(f"  {piece.name:<{wide}}  {piece.about}" for piece in pieces)
    missing = "\nNot in it:\n" + "\n".join(f"- {one}" for one in problems) + "\n"
    return _README.format(contents=contents, problems=missing if problems else "")


def summary(
    report: Mapping[str, Any],
    note: str,
    stated: Sequence[StatedVersion],
    logs: Mapping[str, LogEnd],
) -> str:
    """Return the verdict, versions, the first finding and the last error as Markdown.

    Args:
        report: The report on this run alone.
        note: The same as a note for people.
        stated: The versions that the run states.
        logs: The ends of its logs.
    """
    (run,) = report["runs"]
    here = installed()
    known = versions_line(one for one in stated if one.package in _NAMED)
    opening = "\n".join(note.splitlines()[:_OPENING])
    parts = [
        f"### Training run\n{_fenced(opening)}",
        f"- state: {run['state']}, {_reached(run)}",
        f"- versions that the run states: {known or 'none'}",
        f"- seen by: verl-tui {here['verl-tui']}, Python {here['python']}, {here['platform']}",
        f"- sources: {_sources(run['sources'])}",
    ]
    for first in run["findings"][:1]:
        words = f"{first['severity']} {first['id']}: {first['message']}"
        finding = _fenced("\n".join((words, *first["evidence"])))
        parts.append(f"\n**First finding**\n\n{finding}")
    error = next((end.tracebacks[-1] for end in logs.values() if end.tracebacks), None)
    if error is not None:
        last = _fenced("\n".join(error.splitlines()[-_ERROR_LINES:]))
        parts.append(f"\n**Last error**\n\n{last}")
    return "\n".join(parts) + "\n"


def _reached(run: Mapping[str, Any]) -> str:
    """Return the step that a run has reached and its total number of steps, as far as known."""
    step = "no step so far" if run["step"] is None else f"step {run['step']}"
    return step if run["total_steps"] is None else f"{step} of {run['total_steps']}"


def _sources(sources: Sequence[Mapping[str, Any]]) -> str:
    """Return how many sources of each format there are, and how much of them was unreadable."""
    formats: dict[str, int] = {}
    for one in sources:
        name = one["program"] or one["format"]
        formats[name] = formats.get(name, 0) + 1
    unreadable = sum(one["unreadable"] for one in sources)
    words = ", ".join(
        f"{count} × {name}" if count > 1 else name for name, count in formats.items()
    )
    return words + (f"; {counted(unreadable, 'unreadable line')}" if unreadable else "")


def _fenced(text: str) -> str:
    """Return a block of code that no line of the text can close."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text}\n{fence}"
