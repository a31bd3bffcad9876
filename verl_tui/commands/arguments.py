"""Parses command lines: options and paths in any order, each command's as a text declares them."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import groupby, repeat
from pathlib import Path
from pkgutil import iter_modules
from textwrap import dedent
from typing import TYPE_CHECKING, Any, NoReturn

from verl_tui.commands.shared import Options, piped
from verl_tui.given_files import UsageError
from verl_tui.times import parse_elapsed
from verl_tui.words import lowered, nearest

if TYPE_CHECKING:
    from types import ModuleType

_ANY_EXITS = (
    "64 wrong usage or configuration, 70 an error of verl-tui's own, 73 output cannot be written, "
    "130 interrupted, 141 the reader of the output has gone"
)
DEBUG_LOG = """
--debug-log FILE  write down what is read, how long it takes, and errors, for a report on verl-tui
                  itself
"""
LIKE = 0.75
"""Similarity from which on a word counts as a mistyped command or option: one wrong letter in 5."""
_EXAMPLE = re.compile(r"^ {4}(.+)$", re.MULTILINE)
_DEFAULT = re.compile(r"\(default: (\S+)\)$")
_ENTRY = re.compile(r"(\| )?(.*?)((?: (?:with|without) --\S+){0,2})")


def commands_of(group: ModuleType, name: str | None = None) -> Mapping[str, Any]:
    """Return the commands of a package, or the one that has a name: modules that state `HELP`; of a
    module those of its table `COMMANDS`.

    `HELP` is a sentence, what it takes (see `CommandParser.declare`; nothing of a group), and what
    stands below that. The first example is also shown where no path was named. A command states
    `run`, one without it is a group of commands; it may state `USAGE`, and as `REST` what takes the
    words after `--`.
    """
    if not hasattr(group, "__path__"):
        commands: Mapping[str, Any] = group.COMMANDS
        return commands
    names = sorted(module.name for module in iter_modules(group.__path__))
    found = {
        one: import_module(f"{group.__name__}.{one}")
        for one in names
        if name in (None, one)
    }
    return {one: module for one, module in found.items() if hasattr(module, "HELP")}


def taken_by(command: Any) -> str:
    """Return what a command takes, as its help declares it."""
    return f"{_paragraphs(command)[1]}\n"


def _paragraphs(command: Any) -> list[str]:
    return str(command.HELP).strip().split("\n\n")


class _Paragraphs(argparse.HelpFormatter):
    """Wraps descriptions by paragraph; lines that begin with blanks stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = []
        for plain, lines in groupby(
            text.split("\n"), lambda line: line[:1].strip() != ""
        ):
            words = "\n".join(lines)
            parts.append(super()._fill_text(words, width, indent) if plain else words)
        return "\n".join(parts)


class CommandParser(argparse.ArgumentParser):
    """A parser that takes options and paths in any order, and does not fail with a health code."""

    def __init__(self, **settings: object) -> None:
        # An abbreviated option would hide whether its value follows.
        super().__init__(
            **settings,  # type: ignore[arg-type]
            allow_abbrev=False,
            formatter_class=_Paragraphs,
        )
        self.commands: dict[str, CommandParser] = {}
        self.program = self
        """The parser that has this one among its commands, or theirs; a program's is itself."""
        self.rest = "paths"
        """The argument that takes the words after `--`."""
        self._beside: list[tuple[str, str, str]] = []
        """An option, `with` or `without`, and another."""

    def declare(self, text: str) -> None:
        """Add the options and arguments of a text, an entry each.

        An entry is `-o, --output FILE  words on it`, its further lines indented; without words it
        has the usual ones. The name of the value says what it must be, see `_VALUES`; `a|b` in
        small letters are the words to choose from. `...` behind it takes several values. Words
        that end in `(default: X)` give that default. Neighbours that begin with `|` exclude each
        other; `with --other` or `without --other` behind it says what it makes sense beside, up to
        two of these.
        """
        group: argparse._ActionsContainer | None = None
        for declared, words in _entries(text):
            sign, head, beside = _ENTRY.fullmatch(declared).groups()  # type: ignore[union-attr]
            if not sign:
                group = None
            elif not group:
                group = self.add_mutually_exclusive_group()
            names = _names(head)
            settings = _settings(head, words or _USUAL[head])
            (group or self).add_argument(*names, **settings)
            said = beside.split()
            self._beside += zip(repeat(names[-1]), said[::2], said[1::2])

    def add_commands(self, commands: Mapping[str, Any]) -> None:
        """Add commands with their options."""
        choice = self.add_subparsers(
            title="commands",
            metavar="COMMAND",
            prog=self.prog,
            parser_class=CommandParser,
        )
        for name, module in commands.items():
            about, *below = _paragraphs(module)
            about = " ".join(about.split())
            words = lowered(about.removesuffix("."))
            parser = choice.add_parser(name, help=words, description=about)
            self.commands[name] = parser
            parser.program = self.program
            if not hasattr(module, "run"):
                parser.add_commands(commands_of(module))
                parser.epilog = "\n\n".join(below)
                continue
            parser.rest = getattr(module, "REST", "paths")
            parser.usage = getattr(module, "USAGE", None)
            parser.declare(taken_by(module) + DEBUG_LOG)
            parser.epilog = "\n\n".join(below[1:]) + f", {_ANY_EXITS}"
            parser.set_defaults(execute=module.run, program=self.program)

    def read(self, argv: list[str]) -> argparse.Namespace:
        """Parse a command line of this command or one of its own.

        Raises:
            UsageError: It makes no sense.
        """
        if not self.commands:
            return self._read_mixed(argv)
        if argv and argv[0] in self.commands:
            return self.commands[argv[0]].read(argv[1:])
        if not argv:
            self.error(f"name a command: {', '.join(self.commands)}")
        return self.parse_args(argv)

    def _read_mixed(self, argv: list[str]) -> Options:
        # All words after `--` are paths, or the guard's command; argparse's intermixed parsing
        # would take them for options.
        end = argv.index("--") if "--" in argv else len(argv)
        if any(map(_is_empty, argv if self.rest == "paths" else argv[:end])):
            self.error("a path or value is empty: is a variable not set?")
        options, unknown = self.parse_known_intermixed_args(argv[:end], Options())
        if unknown:
            self._refuse(unknown)
        rest = [*(getattr(options, self.rest, None) or ()), *argv[end + 1 :]]
        setattr(options, self.rest, rest)
        for name, how, other in self._beside:
            if options.has(name) and options.has(other) is not (how == "with"):
                self.error(f"{name} goes {how} {other}")
        self._check(options.paths)
        return options

    def _check(self, paths: Sequence[str]) -> None:
        """Refuse that no path was named, and standard input that cannot be read."""
        taken = (str(one.help) for one in self._actions if one.dest == "paths")
        words = next(taken, "none")
        example = _EXAMPLE.search(str(self.epilog))
        if not paths and example and "none" not in words:
            raise UsageError(
                "name a log, the directory of a run, or a quoted glob, for example: "
                f"{example[1]}; `verl-tui demo` shows a simulated training and needs nothing, "
                "`verl-tui help` explains"
            )
        if piped(paths) and "or -" not in words:
            raise UsageError(
                "-: this command reads no standard input, write it to a file first"
            )
        if piped(paths) and sys.stdin.isatty():
            raise UsageError(
                "-: nothing is piped in; try `some-training 2>&1 | verl-tui -`"
            )

    def _refuse(self, words: list[str]) -> NoReturn:
        wrong = [word.partition("=")[0] for word in words if word.startswith("-")]
        if not wrong:
            self.error(f"`{self.prog}` does not take {' '.join(words)}")
        names = [name for one in self._actions for name in one.option_strings]
        hint = nearest(wrong[0], names, 1, LIKE)
        said = f"`{self.prog}` has no option {wrong[0]}"
        self.error("; ".join(filter(None, (said, hint))))

    @property
    def valued(self) -> list[str]:
        """The options that take a value."""
        with_value = (one for one in self._actions if one.nargs != 0)
        return [name for one in with_value for name in one.option_strings]

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            words = [str(choice) for choice in action.choices]
            hint = nearest(str(value), words) or f"choose from {', '.join(words)}"
            raise argparse.ArgumentError(action, f"there is no {value}; {hint}")

    def error(self, message: str) -> NoReturn:
        """Refuse with one sentence instead of the whole usage."""
        see = f"see `{self.prog} --help`"
        raise UsageError(
            f"{message} ({see})" if message.endswith("?") else f"{message}; {see}"
        )


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Yield what a text declares, each with the words on it."""
    for entry in re.split(r"\n(?=\S)", dedent(text).strip()):
        head, _, words = entry.strip().partition("  ")
        yield head, " ".join(words.split())


def _names(head: str) -> list[str]:
    """Return what an entry declares: the names of an option, or what an argument is kept as."""
    found = [word.rstrip(",") for word in head.split() if word.startswith("-")]
    return found or [f"{head.removesuffix('...').lower()}s"]


def _settings(head: str, words: str) -> dict[str, Any]:
    """Return what argparse is told of an entry."""
    value = head.rsplit(maxsplit=1)[-1]
    found: dict[str, Any] = {"help": words.replace("%", "%%")}
    if value.startswith("-"):
        return found | {"action": "store_true"}
    name = value.removesuffix("...")
    if re.fullmatch(r"[a-z]+(\|[a-z]+)+", name):
        found["choices"] = name.split("|")
    else:
        found |= {"metavar": name, "type": _VALUES.get(name, str)}
    if name != value:
        found |= {"action": "append"} if head.startswith("-") else {"nargs": "*"}
    if default := _DEFAULT.search(words):
        found["default"] = default[1]
    return found


def _is_empty(word: str) -> bool:
    """Return whether a word of a command line is blank, or an option's value in it is; as a path
    it would mean the current directory.
    """
    option, sign, value = word.partition("=")
    return not (value if sign and option.startswith("--") else word).strip()


def _file(*endings: str, why: str = "") -> Callable[[str], Path]:
    def value(text: str) -> Path:
        path = Path(text)
        if path.suffix in endings:
            return path
        listed = " or ".join(endings)
        raise argparse.ArgumentTypeError(f"{text} must end in {listed}{why}")

    return value


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{2,4})[xX](\d{1,3})", text)
    columns, rows = map(int, found.groups()) if found else (0, 0)
    if not (20 <= columns <= 1000 and 5 <= rows <= 500):
        raise argparse.ArgumentTypeError(
            f"{text} is not a size like 120x40 (20x5 to 1000x500)"
        )
    return columns, rows


def _number(
    read: Callable[[str], float], above: float, most: float, what: str
) -> Callable[[str], float]:
    def value(text: str) -> float:
        with suppress(ValueError):
            found = read(text)
            if above < found <= most:
                return found
        raise argparse.ArgumentTypeError(f"{text} is not a {what}")

    return value


_USUAL = dict(
    _entries(
        """
--ascii  draw with ASCII only
--baseline RUN  run that the others are compared with: its name, a part of it, or its path (the
                first run, if not given)
--config FILE  configuration file to use instead of the default (see `verl-tui config`)
--no-mouse  leave the mouse to the terminal
--json  write JSON for programs
PATH...  log, directory, quoted glob, address or -
"""
    )
)
"""Words on what several commands take."""
_GREATEST = sys.float_info.max
_FACTOR = _number(float, 0, _GREATEST, "number above 0")
_VALUES: Mapping[str, Callable[[str], object]] = {
    "COLSxROWS": _size,
    "DIR": Path,
    "FILE": Path,
    "FILE.prom": _file(".prom", why=": node_exporter passes over other files"),
    "FILE.svg": _file(".svg", ".txt"),
    "FILE.zip": _file(".zip"),
    "FACTOR": _FACTOR,
    "LIMIT": _FACTOR,
    "N": _number(int, 0, math.inf, "whole number (1 or more)"),
    "PORT": _number(int, -1, 65535, "port (0 to 65535)"),
    "SECONDS": _number(float, 0, 3600, "number of seconds (above 0, at most 3600)"),
    "SEED": int,
    "SHARE": _number(float, 0, math.nextafter(1, 0), "share between 0 and 1"),
    "TIME": _number(
        lambda text: parse_elapsed(text) or float(text),
        0,
        _GREATEST,
        "time such as 90 (seconds), 30m or 2h",
    ),
    "STEP": _number(int, -1, math.inf, "step (a whole number, 0 or more)"),
}
"""Name of a value -> what reads it; a value of any other name is a text."""
