"""Parses command lines: options and paths in any order, and `watch` need not be named."""

from __future__ import annotations

import argparse
import math
from difflib import get_close_matches
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

from verl_tui.given_files import is_there

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

EXIT_USAGE = 64
"""A command line or a configuration that makes no sense; argparse's own 2 means `critical` here."""
_ANY_EXITS = (
    "64 wrong usage or configuration, 70 an error of verl-tui's own, 73 output cannot be written, "
    "130 interrupted, 141 the reader of the output has gone"
)
DEFAULT = "watch"
"""The command that needs no name."""
_ENDING = {"-h", "--help", "--version", "--print-completion"}
"""Options of the program that need no command."""
_LIKE = 0.75
"""Similarity from which on a word counts as a mistyped command: one wrong letter in 5."""


class CommandError(Exception):
    """A command cannot be carried out; the text is one sentence."""

    def __init__(self, sentence: str, code: int = EXIT_USAGE) -> None:
        super().__init__(sentence)
        self.code = code


class CommandModule(Protocol):
    """A module that is a command. It may also say `EXITS`: its exit codes, where they are not just
    0 and 3.
    """

    NAME: str
    HELP: str
    """A line for the list of commands, without a full stop."""
    EXAMPLES: tuple[str, ...]
    """Command lines that its help shows."""

    @property
    def run(self) -> Callable[[argparse.Namespace], int] | None:
        """Run the command and return the exit code; None for a group of commands."""
        ...

    def options(self, parser: CommandParser, /) -> None:
        """Add its options and paths."""
        ...


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

    def flag(self, *names: str, help: str) -> None:
        """Add an option without a value."""
        self.add_argument(*names, action="store_true", help=help)

    def add_commands(self, commands: Iterable[CommandModule]) -> None:
        """Add commands with their options."""
        choice = self.add_subparsers(
            title="commands",
            metavar="COMMAND",
            prog=self.prog,
            parser_class=CommandParser,
        )
        for command in commands:
            description = f"{command.HELP[0].upper()}{command.HELP[1:]}."
            added = choice.add_parser(
                command.NAME, help=command.HELP, description=description
            )
            added.set_defaults(run=command.run)
            added.program = self.program
            command.options(added)
            if not added.commands:
                add_debug_option(added)
            added.epilog = _ending(command, added.epilog)
            self.commands[command.NAME] = added

    def read(self, argv: list[str]) -> argparse.Namespace:
        """Parse a command line of this command or one of its own.

        Raises:
            CommandError: It makes no sense.
        """
        if not self.commands:
            return self._read_mixed(argv)
        if argv and argv[0] in self.commands:
            return self.commands[argv[0]].read(argv[1:])
        if not argv:
            self.error(f"name a command: {', '.join(self.commands)}")
        return self.parse_args(argv)

    def _read_mixed(self, argv: list[str]) -> argparse.Namespace:
        # All words after `--` are paths, or the guard's command; argparse's intermixed parsing
        # would take them for options.
        end = argv.index("--") if "--" in argv else len(argv)
        if any(map(_is_empty, argv if self.rest == "paths" else argv[:end])):
            self.error("a path or value is empty: is a variable not set?")
        options, unknown = self.parse_known_intermixed_args(argv[:end])
        if unknown:
            self.error(self._unknown(unknown))
        if rest := argv[end + 1 :]:
            kept = getattr(options, self.rest, None) or ()
            setattr(options, self.rest, [*kept, *rest])
        return options

    def _unknown(self, words: list[str]) -> str:
        """Return a sentence on words that the command does not take."""
        options = [word.partition("=")[0] for word in words if word.startswith("-")]
        if not options:
            return f"`{self.prog}` does not take {' '.join(words)}"
        hint = did_you_mean(options[0], self._option_names())
        if hint:
            return f"there is no option {options[0]}{hint}"
        commands = self.program.commands.items()
        others = [
            f"`{name}`" for name, one in commands if options[0] in one._option_names()
        ]
        have = "has" if len(others) == 1 else "have"
        owner = f", but {' and '.join(others)} {have} it" if others else ""
        return f"`{self.prog}` has no option {options[0]}{owner}"

    def _option_names(self) -> list[str]:
        return [name for option in self._actions for name in option.option_strings]

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            words = [str(choice) for choice in action.choices]
            hint = (
                did_you_mean(str(value), words) or f": choose from {', '.join(words)}"
            )
            raise argparse.ArgumentError(action, f"there is no {value}{hint}")

    def error(self, message: str) -> NoReturn:
        """Refuse with one sentence instead of the whole usage."""
        see = f"see `{self.prog} --help`"
        raise CommandError(
            f"{message} ({see})" if message.endswith("?") else f"{message}; {see}"
        )


class ProgramParser(CommandParser):
    """The parser of the program: finds the command, which is `watch` if none is named."""

    def read(self, argv: list[str]) -> argparse.Namespace:
        """Parse the program's whole command line."""
        at = self._first_word(argv)
        if {word.partition("=")[0] for word in argv[:at]} & _ENDING:
            return self.parse_args(argv[:at])
        if at < len(argv) and argv[at] in self.commands:
            return super().read([argv[at], *argv[:at], *argv[at + 1 :]])
        if at < len(argv) and (meant := self._meant(argv[at])):
            self.error(
                f"{argv[at]} is neither a command nor a file: did you mean `{meant}`? "
                f"For a log that does not exist yet, write ./{argv[at]}"
            )
        return super().read([DEFAULT, *argv])

    def _first_word(self, argv: list[str]) -> int:
        """Return the index of the first word that is no option and no option's value."""
        valued = {
            name
            for option in self._actions
            if option.nargs != 0
            for name in option.option_strings
        }
        at = 0
        while (
            at < len(argv) and argv[at].startswith("-") and argv[at] not in ("-", "--")
        ):
            at += 2 if argv[at] in valued else 1
        return at

    def _meant(self, word: str) -> str | None:
        """Return the command that a word resembles, None if it resembles none or is a path."""
        if not word.isalpha() or is_there(word):
            return None
        return next(
            iter(get_close_matches(word, self.commands, n=1, cutoff=_LIKE)), None
        )


def _is_empty(word: str) -> bool:
    """Return whether a word of a command line is blank, or an option's value in it is; as a path
    it would mean the current directory.
    """
    option, sign, value = word.partition("=")
    return not (value if sign and option.startswith("--") else word).strip()


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a sentence that asks for the nearest word, empty if none is near."""
    plain = {one.lstrip("-"): one for one in known}
    near = get_close_matches(word.lstrip("-"), plain, n=1)
    return f", did you mean {plain[near[0]]}?" if near else ""


def _ending(command: CommandModule, more: str | None) -> str:
    """Return the text below the options of a command: examples, further help, exit codes."""
    examples = "".join(f"\n    {line}" for line in getattr(command, "EXAMPLES", ()))
    codes = getattr(command, "EXITS", "0 done, 3 nothing readable")
    parts = (
        f"for example:{examples}" if examples else "",
        more,
        f"exit codes: {codes}, {_ANY_EXITS}" if command.run is not None else "",
    )
    return "\n\n".join(part for part in parts if part)


def add_debug_option(parser: argparse.ArgumentParser) -> None:
    """Add the option of every command that logs what it does."""
    help = "write down what is read, how long it takes, and errors, for a report on verl-tui itself"
    parser.add_argument("--debug-log", type=Path, metavar="FILE", help=help)


def snapshot(text: str) -> Path:
    """Return the path of a snapshot."""
    path = Path(text)
    if path.suffix not in (".svg", ".txt"):
        raise argparse.ArgumentTypeError(f"{text} must end in .svg or .txt")
    return path


def size(text: str) -> tuple[int, int]:
    """Return columns and rows."""
    columns, _, rows = text.lower().partition("x")
    try:
        return _whole(20, 1000, "width")(columns), _whole(5, 500, "height")(rows)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(
            f"{text} is not a size like 120x40 (20x5 to 1000x500)"
        ) from error


def _whole(low: int, high: float, what: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text} is not a {what}")
        return int(text)

    return read


def _between(low: float, high: float, what: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = low
        if not low < value < high:
            raise argparse.ArgumentTypeError(f"{text} is not a {what}")
        return value

    return read


count = _whole(1, math.inf, "whole number (1 or more)")
port = _whole(0, 65535, "port (0 to 65535)")
"""A TCP port, 0 for any that is free."""
step = _whole(0, math.inf, "step (a whole number, 0 or more)")
seconds = _between(
    0, math.nextafter(3600, 3601), "number of seconds (above 0, at most 3600)"
)
share = _between(0, 1, "share between 0 and 1")
positive = _between(0, math.inf, "number above 0")
