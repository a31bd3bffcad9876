"""The command line: finds the command, runs it and returns its exit code."""

from __future__ import annotations

import io
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from verl_tui import __version__, commands
from verl_tui.commands import watch
from verl_tui.commands.arguments import (
    DEBUG_LOG,
    LIKE,
    CommandParser,
    commands_of,
    taken_by,
)
from verl_tui.commands.shared import (
    EXIT_INTERRUPTED,
    EXIT_OWN_ERROR,
    EXIT_PIPE,
    close_stdout,
    debugging,
    is_unwritten,
    print_message,
)
from verl_tui.given_files import OutputError, UsageError, is_there, why
from verl_tui.words import nearest

_COMPLETION = """
--print-completion bash|zsh|fish|tcsh  print a completion script for a shell
"""
_ENDING = {"-h", "--help", "--version", "--print-completion"}
"""Options of the program that need no command."""


def main(
    argv: Sequence[str] | None = None, *, ready: Callable[[], object] = lambda: None
) -> int:
    """Run a command and return the exit code.

    Args:
        argv: Words after the program's name; by default those of the process.
        ready: Is called once the words make sense, before the command runs.
    """
    try:
        _write_anything()
        words = sys.argv[1:] if argv is None else list(argv)
        options = read(words)
        ready()
        with debugging(options.debug_log, words):
            code: int = options.execute(options)
        sys.stdout.flush()
    except UsageError as error:
        print_message(str(error))
        return error.code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        close_stdout()
        return EXIT_PIPE
    except OSError as error:
        if not is_unwritten(error):
            return _own_error(error)
        close_stdout()
        print_message(f"standard output: {why(error)}")
        return OutputError.code
    except Exception as error:  # noqa: BLE001 - 1 and 2, as Python would end, are verdicts
        return _own_error(error)
    return code


def _write_anything() -> None:
    """Show a question mark for a character that the terminal cannot show, instead of a
    traceback.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _own_error(error: Exception) -> int:
    """Report an error of our own, with everything that a bug report needs."""
    if os.environ.get("VERL_TUI_STRICT"):
        raise error
    from verl_tui.failures import Failures
    from verl_tui.secrets import own_mask

    failures = Failures()
    print_message(
        f"an error of verl-tui's own: {failures.add(error).words}; please report it:"
    )
    with suppress(OSError):
        print(failures.report(own_mask()), end="", file=sys.stderr, flush=True)
    return EXIT_OWN_ERROR


def read(argv: list[str]) -> Namespace:
    """Parse a command line; only the command that it names is imported.

    Raises:
        UsageError: It makes no sense.
    """
    try:
        return _read(argv)
    except SystemExit:
        # help was asked for; that it cannot be written is an error like others
        sys.stdout.flush()
        raise


def _read(argv: list[str]) -> Namespace:
    parser = build_parser({"watch": watch})
    at = _first_word(parser, argv)
    asked = {word.partition("=")[0] for word in argv[:at]}
    if asked & {"-h", "--help"}:
        parser = build_parser()  # with all commands
    if asked & _ENDING:
        return parser.parse_args(argv[:at])
    word = argv[at] if at < len(argv) else ""
    named = commands_of(commands, word)
    if named:
        # the pages of help are on all commands
        parser = build_parser(None if word == "help" else named)
        return parser.commands[word].read([*argv[:at], *argv[at + 1 :]])
    if word.isalpha() and not is_there(word):
        every = commands_of(commands)
        if hint := nearest(word, every, 1, LIKE):
            parser.error(
                f"{word} is neither a command nor a file: {hint} "
                f"For a log that does not exist yet, write ./{word}"
            )
    return parser.commands["watch"].read(argv)


def _first_word(parser: CommandParser, argv: list[str]) -> int:
    """Return the index of the first word that is no option and no option's value."""
    at = 0
    while at < len(argv) and argv[at].startswith("-") and argv[at] not in ("-", "--"):
        at += 2 if argv[at] in parser.valued else 1
    return at


def build_parser(chosen: Mapping[str, Any] | None = None) -> CommandParser:
    """Return the parser of these commands, of all if none are given."""
    parser = CommandParser(
        prog="verl-tui",
        usage="verl-tui [OPTION]... PATH...\n       verl-tui COMMAND ...",
        description="Watch verl training runs in the terminal, for example: verl-tui 'logs/run_*'",
        epilog="A PATH is a log, the directory of a run, a directory of runs, or a quoted glob; "
        "- is standard input. A path named like a command is written ./check.\n\n"
        "`verl-tui help` has pages on keys, formats, rules, metrics and settings, `verl-tui demo` "
        "needs no run.",
    )
    parser.add_argument(
        "--version", action="version", version=f"verl-tui {__version__}"
    )
    unnamed = taken_by(watch).replace("PATH...", "")  # before the first path
    parser.declare(_COMPLETION + unnamed + DEBUG_LOG)
    parser.set_defaults(execute=_completion)
    parser.add_commands(chosen or {"watch": watch} | dict(commands_of(commands)))
    return parser


def _completion(options: Namespace) -> int:
    from verl_tui.commands import completion

    print(completion.script(build_parser(), options.print_completion))
    return 0
