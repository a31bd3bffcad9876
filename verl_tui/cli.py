"""The command line: finds the command, runs it and returns its exit code."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from verl_tui import __version__, commands
from verl_tui.commands import completion, watch
from verl_tui.commands.arguments import (
    DEFAULT,
    EXIT_USAGE,
    CommandError,
    CommandParser,
    ProgramParser,
    add_debug_option,
)
from verl_tui.commands.debugging import debugging
from verl_tui.commands.discovery import command_of, commands_of
from verl_tui.commands.options import EXAMPLE
from verl_tui.commands.output import (
    EXIT_INTERRUPTED,
    EXIT_OUTPUT,
    EXIT_OWN_ERROR,
    EXIT_PIPE,
    close_stdout,
    is_unwritten,
    print_message,
)
from verl_tui.config import ConfigError
from verl_tui.given_files import is_there

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from verl_tui.commands.arguments import CommandModule


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
        options = _read(words)
        ready()
        with debugging(options.debug_log, words):
            code: int = options.run(options)
        sys.stdout.flush()
    except (CommandError, ConfigError) as error:
        print_message(str(error))
        return getattr(error, "code", EXIT_USAGE)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        close_stdout()
        return EXIT_PIPE
    except OSError as error:
        if not is_unwritten(error):
            return _own_error(error)
        close_stdout()
        print_message(f"standard output: {(error.strerror or str(error)).lower()}")
        return EXIT_OUTPUT
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


def _read(words: list[str]) -> argparse.Namespace:
    """Parse a command line, with the one command that its first word names where it names one.

    Raises:
        CommandError: It makes no sense.
    """
    tells_of_all = words[:1] in ([], ["help"])
    try:
        named = [] if tells_of_all else _meant(words[0])
        if named:
            # The parser of all commands reports the error: another command may have the option, or
            # a closer word.
            with suppress(CommandError):
                return build_parser(named).read(words)
        return build_parser().read(words)
    except SystemExit:
        # help was asked for; that it cannot be written is an error like others
        sys.stdout.flush()
        raise


def _meant(word: str) -> list[CommandModule]:
    """Return the command that a first word names, the default one for a path; none if only the
    parser of all commands can decide.
    """
    named = command_of(commands, word)
    return named or (command_of(commands, DEFAULT) if is_there(word) else [])


def build_parser(chosen: Sequence[CommandModule] = ()) -> CommandParser:
    """Return the parser of these commands, of all if none is given."""
    parser = ProgramParser(
        prog="verl-tui",
        usage="verl-tui [OPTION]... PATH...\n       verl-tui COMMAND ...",
        description=f"Watch verl training runs in the terminal, for example: {EXAMPLE}",
        epilog="A PATH is a log, the directory of a run, a directory of runs, or a quoted glob; "
        "- is standard input. A path named like a command is written ./check.\n\n"
        "`verl-tui help` has pages on keys, formats, rules, metrics and settings, `verl-tui demo` "
        "needs no run.",
    )
    parser.add_argument(
        "--version", action="version", version=f"verl-tui {__version__}"
    )
    parser.add_argument(
        "--print-completion",
        choices=completion.SHELLS,
        help="print a completion script for a shell",
    )
    parser.set_defaults(run=_completion)
    watch.unnamed(parser)
    add_debug_option(parser)
    parser.add_commands(chosen or commands_of(commands, first=DEFAULT))
    return parser


def _completion(options: argparse.Namespace) -> int:
    print(completion.script(build_parser(), options.print_completion))
    return 0
