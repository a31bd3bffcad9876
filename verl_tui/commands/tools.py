"""Commands as tools for agents: what each takes, by its own options, and what it answers; small,
masked, and within the paths that are served.
"""

from __future__ import annotations

import glob
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from verl_tui import commands
from verl_tui.commands.arguments import CommandParser, commands_of
from verl_tui.commands.completion import actions
from verl_tui.failures import note_failure
from verl_tui.given_files import NothingError, UsageError, is_there
from verl_tui.patterns import pattern
from verl_tui.secrets import own_mask

if TYPE_CHECKING:
    import argparse

    from verl_tui.plain_data import Data

ROOM = 24_000
"""Characters of an answer, about 8,000 tokens: heuristic, a third of what clients take."""
_COMMANDS = ("get", "check", "compare", "explain")
_OFFERED = pattern(
    "run|severity|last|around|error|grep|full|whole|metric|filter|best|worst|training|validation|"
    "best-by|against|band|baseline|columns|where|sort|align"
)
"""Options that tools have: none that writes, waits, draws, or names another file."""
_PATH = "a log or a directory, at or below what is served (if not given, all of that)"
_IN_MARKDOWN = "compare"
"""The tool whose tables are a tenth as long as its JSON."""
_OF_COMMANDS = pattern(r"[; (]{1,3}see `[^`]*`\)?$|(?<![\w-])--(?=[a-z])")
"""What is said of command lines and not of tools."""
_ONE_AT_A_TIME = Lock()
"""Held by the command that has standard output for itself."""


@cache
def tools() -> Mapping[str, CommandParser]:
    """Return the parser of each tool."""
    program = CommandParser(prog="verl-tui")
    every = commands_of(commands).items()
    program.add_commands({name: one for name, one in every if name in _COMMANDS})
    return {
        name: parser
        for command, group in program.commands.items()
        for name, parser in (group.commands or {command: group}).items()
    }


def described(name: str) -> Data:
    """Return what a tool is: its name, what it does, and what it takes as a JSON schema."""
    parser = tools()[name]
    known: dict[str, Data] = {"path": {"type": "string", "description": _PATH}}
    known |= {name: _property(one) for name, one in _options(parser).items()}
    takes = {"type": "object", "properties": known, "additionalProperties": False}
    return {"name": name, "description": parser.description, "input_schema": takes}


def _options(parser: CommandParser) -> dict[str, argparse.Action]:
    known = {one.dest.replace("_", "-"): one for one in actions(parser)}
    return {name: one for name, one in known.items() if _OFFERED.fullmatch(name)}


def _property(option: argparse.Action) -> Data:
    words = _OF_COMMANDS.sub("", str(option.help).replace("%%", "%"))
    kind = "integer" if option.metavar in ("N", "STEP") else "string"
    found = {"type": kind if option.nargs != 0 else "boolean", "description": words}
    return found if option.choices is None else {**found, "enum": [*option.choices]}


def answer(name: str, arguments: Data, served: Sequence[str]) -> str:
    """Return what a tool answers, as JSON.

    Args:
        name: The tool.
        arguments: What it is given.
        served: The paths that the user named.

    Raises:
        UsageError: It has no answer.
    """
    mask = own_mask(keep_names=True)
    mask.keep_homes = True  # agents act on paths
    out, said = StringIO(), StringIO()
    code, why = NothingError.code, ""
    try:
        words = _words(name, arguments, served)
        with _ONE_AT_A_TIME, redirect_stdout(out), redirect_stderr(said):
            options = tools()[name].read(words)
            code = options.execute(options)
    except UsageError as error:
        why = str(error)
    except Exception as error:  # noqa: BLE001 - a net at the border: the next call may be answered
        why = f"an error of verl-tui's own: {note_failure(name, error)}"
    mask.learn(written := out.getvalue())
    messages = [
        ": ".join(
            map(mask.text, one.split(": ", 1))
        )  # no secret is what a path is said to be
        for one in f"{said.getvalue()}{why}".replace("verl-tui: ", "").splitlines()
    ]
    if code == NothingError.code:
        raise UsageError(_OF_COMMANDS.sub("", "; ".join(messages)))
    data = {"markdown": written} if name == _IN_MARKDOWN else json.loads(written)
    found = {**mask.data(data), "exit_code": code, "messages": messages}
    if name == "check" and len(found["runs"]) > 1:
        found["runs"] = list(map(_brief, found["runs"]))
        found["messages"].append("of several runs in brief: name one by its path")
    return as_json(fitted(found, ROOM))


def _brief(run: Data) -> Data:
    """Return what is said of one of several runs: no list but the comparison that is asked for."""
    every = run.items()
    return {k: v for k, v in every if k == "against" or not isinstance(v, list | dict)}


def _words(name: str, given: Data, served: Sequence[str]) -> list[str]:
    """Return the words of a command line; no value in it can be taken for an option."""
    if name not in tools():
        raise UsageError(f"no tool {name}: there are {', '.join(tools())}")
    known = ("path", *_options(tools()[name]))
    for key in given.keys() - known:
        raise UsageError(f"{name} takes no {key}: it takes {', '.join(known)}")
    form = "--md" if name == _IN_MARKDOWN else "--json"
    path, *rest = (_option(key, given.get(key), served) for key in known)
    paths = [path[0].partition("=")[2]] if path else served
    return [form, *chain(*rest), "--", *paths]


def _option(key: str, value: Any, served: Sequence[str]) -> list[str]:
    """Return an option, once for each of its values."""
    if value is None or value is False:
        return []
    if key == "path" or (key == "against" and is_there(str(value))):
        value = within(str(value), served)
    several = value if isinstance(value, list) else [value]
    return [f"--{key}" + f"={one}" * (one is not True) for one in several]


def within(path: str, served: Sequence[str]) -> str:
    """Return where a path leads, its links resolved.

    Raises:
        UsageError: That is not at or below what is served, or nothing is there.
    """
    if path in served:
        return path
    real = Path(os.path.realpath(os.path.expanduser(path.replace("\0", "?"))))  # noqa: PTH111
    for spec in map(os.path.expanduser, served):
        found = [spec] if is_there(spec) else glob.glob(spec, recursive=True)  # noqa: PTH207
        tops = {Path(os.path.realpath(one)) for one in found}
        if tops & {real, *real.parents}:
            if is_there(real):
                return str(real)
            raise UsageError(f"{path}: no such file or directory")
    raise UsageError(f"{path}: outside of what is served: {', '.join(served)}")


# -- answers that fit into the context of a model --------------------------------------------------


_ITEMS, _SHORT = 1024, 100
"""Items of a list and characters of a text that are given at least: the items are halved until all
fits, and the characters of longer texts with them.
"""
_NEWEST_LAST = ("lines", "points")
"""Lists whose beginning is left out, and not their end."""


def as_json(value: Any) -> str:
    """Return data as JSON on one line without blanks."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def fitted(answer: dict[str, Any], room: int) -> dict[str, Any]:
    """Return an answer cut to so many characters of JSON, where its shape allows that; `cut` says
    how many items of each list and characters of each text were left out.

    Args:
        answer: Mappings, lists, texts, numbers.
        room: Most characters.
    """
    items, most = _ITEMS, room
    while True:
        cut = Counter[str]()
        found = _cut(answer, items, most, "", cut)
        if len(as_json(found)) <= room or items == 1:
            left_out = {place[1:]: count for place, count in cut.items() if count}
            return {**found, "cut": left_out}
        items, most = items // 2, max(_SHORT, most // 2)


def _cut(value: Any, items: int, most: int, place: str, cut: Counter[str]) -> Any:
    if isinstance(value, dict):
        return {
            name: _cut(one, items, most, f"{place}.{name}", cut)
            for name, one in value.items()
        }
    if not isinstance(value, str | list):
        return value
    limit = most if isinstance(value, str) else items
    left = max(0, len(value) - limit)
    cut[place] += left
    if isinstance(value, str):
        return value[:limit] + "…" * (left > 0)
    shown = value[left:] if place.endswith(_NEWEST_LAST) else value[:limit]
    return [_cut(one, items, most, f"{place}[]", cut) for one in shown]
