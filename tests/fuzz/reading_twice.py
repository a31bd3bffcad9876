"""Reads a file as it grows and at once, and says what of its run differs."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from log_reading import Watch, values

from verl_tui.evaluation import PREFIX

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from fuzz.damaged import Case

    from verl_tui.runs.run import Run


class BrokenError(Exception):
    """Something that must always hold does not."""


def _found(watch: Watch) -> dict[str, Any]:
    """Return all that was read in the end; an error of a reader is none of a log."""
    watch.look(search=False, finish=True)
    monitor = watch.monitor
    said = monitor.problems
    for run in monitor.runs.values():
        said += tuple(one.status.problem or "" for one in run.sources.values())
    if wrong := [
        one for one in said if "any further" in one or "could not be examined" in one
    ]:
        raise BrokenError(wrong[0])
    return {name: _described(run) for name, run in monitor.runs.items()} | {
        "": sorted((one.path, one.reason) for one in monitor.passed)
    }


def _described(run: Run) -> dict[str, Any]:
    """Return what was read of a run, its files by their names."""
    return {
        "sources": sorted(
            (
                path.rpartition("/")[2],
                one.status.format,
                one.status.records,
                one.status.unreadable,
            )
            for path, one in run.sources.items()
        ),
        "values": {
            key: {step: repr(value) for step, value in values(run, key).items()}
            for key in sorted(run.keys)
        },
        "samples": [repr(run.samples.kept(place)) for place in run.samples.places],
        "settings": {key: repr(value) for key, value in run.settings.items()},
        "steps": (run.step, run.total_steps),
        "events": [(event.kind, event.text, event.line) for event in run.events],
    }


def difference(
    case: Case,
    directory: Path,
    *,
    named: bool = False,
    following: AbstractContextManager[object] | None = None,
) -> str | None:
    """Return what of a file differs between reading it as it grows and at once, None if nothing.

    Args:
        case: The file.
        directory: An empty one; the file is left in it.
        named: Whether the user names the file, not its directory.
        following: Is entered while the file grows and is read.

    Raises:
        BrokenError: A reader raised.
    """
    path = directory / case.name
    path.write_bytes(b"")
    watch = Watch(path if named else directory)
    with following or nullcontext():
        for look in case.looks:
            with path.open("ab") as file:
                file.write(case.data[path.stat().st_size : look])
            watch.look()
        grown = _found(watch)
    at_once = Watch(path if named else directory)
    at_once.look()
    whole = _found(at_once)
    return _different(*_paired(grown, whole))


def _different(grown: dict[str, Any], whole: dict[str, Any]) -> str | None:
    for name in sorted(grown.keys() | whole.keys()):
        if name not in grown or name not in whole:
            return f"run {name!r} is only there {'as it grows' if name in grown else 'at once'}"
        if name:
            _drop_replaced(grown[name]["values"], whole[name]["values"])
        if grown[name] != whole[name]:
            return f"run {name!r}: {_first(grown[name], whole[name])}"
    return None


def _paired(
    grown: dict[str, Any], whole: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Call a run the same in both: it keeps the name that it is found with, and a later line may
    say another.
    """
    if len(grown) == len(whole) == 2:
        return {"": grown.pop(""), "run": grown.popitem()[1]}, {
            "": whole.pop(""),
            "run": whole.popitem()[1],
        }
    return grown, whole


def _drop_replaced(grown: dict[str, Any], whole: dict[str, Any]) -> None:
    """Forget figures of samples that come again and have these no more: what has been said of a
    step is replaced, never withdrawn.
    """
    for key in [key for key in grown if PREFIX in key]:
        grown[key] = {
            step: one for step, one in grown[key].items() if step in whole.get(key, {})
        }
        if not grown[key]:
            del grown[key]


def _first(grown: Any, whole: Any) -> str:
    if not isinstance(grown, dict):
        return f"{grown!r:.300} as it grows, {whole!r:.300} at once"
    at = next(key for key in whole if grown[key] != whole[key])
    return f"{at}: {grown[at]!r:.300} as it grows, {whole[at]!r:.300} at once"
