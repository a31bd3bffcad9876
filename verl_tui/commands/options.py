"""Options that several commands share: paths, the configuration, the screen."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.commands.arguments import CommandError
from verl_tui.commands.output import EXIT_NOTHING
from verl_tui.config import ConfigError, config_path, load_config
from verl_tui.trainers import broken

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from verl_tui.commands.arguments import CommandParser
    from verl_tui.config import Config

EXAMPLE = "verl-tui 'logs/run_*'"
"""The command line shown to a user who has named no path."""


def paths_argument(
    parser: CommandParser, help: str = "log, directory, quoted glob, address or -"
) -> None:
    """Add the paths."""
    parser.add_argument("paths", nargs="*", metavar="PATH", help=help)


def config_option(parser: CommandParser) -> None:
    """Add the option that names a configuration."""
    help = "configuration file to use instead of the default (see `verl-tui config`)"
    parser.add_argument("--config", type=Path, metavar="FILE", help=help)


def screen_options(parser: CommandParser) -> None:
    """Add the options of all commands that draw on the terminal, `--config` included."""
    config_option(parser)
    parser.flag("--ascii", help="draw with ASCII only")
    parser.flag("--no-mouse", help="leave the mouse to the terminal")


def paths_of(options: argparse.Namespace, example: str) -> Sequence[str]:
    """Return the paths that were named.

    Args:
        options: The parsed command line.
        example: A command line to show if no path was named.

    Raises:
        CommandError: None was named, or standard input is to be read and is a terminal.
    """
    if not options.paths:
        raise CommandError(
            f"name a log, the directory of a run, or a quoted glob, for example: {example}; "
            "`verl-tui demo` shows a simulated training and needs nothing, `verl-tui help` explains"
        )
    paths: list[str] = options.paths
    if piped(paths) and sys.stdin is not None and sys.stdin.isatty():
        raise CommandError(
            "-: nothing is piped in; try `some-training 2>&1 | verl-tui -`"
        )
    return paths


def finding_ids() -> Iterable[str]:
    """Return the ids of all possible findings, for shell completion."""
    from verl_tui.health.guide_settings import load_guide

    return dict.fromkeys(rule.id for rule in load_guide().rules)


def indicator_ids() -> Iterable[str]:
    """Return the ids of all indicators, for shell completion."""
    from verl_tui.indicators import INDICATORS

    return INDICATORS


def paths_and_config(
    options: argparse.Namespace, example: str
) -> tuple[Sequence[str], Config]:
    """Return the paths that were named and the configuration, see `paths_of`."""
    return paths_of(options, example), configuration(options)


def piped(paths: Sequence[str]) -> bool:
    """Return whether one of these paths means standard input."""
    from verl_tui.sources import pipe

    return any(map(pipe.is_meant, paths))


def configuration(options: argparse.Namespace) -> Config:
    """Return the configuration with the changes of the command line, its rules checked."""
    config = load_config(options.config)
    for sentence in broken():
        raise ConfigError(sentence)
    if config.guide or config.notify:  # else there is nothing of the user's to check
        _check(config, options.config)
    ascii = True if getattr(options, "ascii", False) else config.ascii
    return replace(
        config,
        ascii=ascii,
        mouse=config.mouse and not getattr(options, "no_mouse", False),
    )


def _check(config: Config, path: Path | None) -> None:
    """Refuse invalid changes of rules and invalid notification settings.

    Raises:
        ConfigError: One does not.
    """
    from verl_tui.commands.notifying import settings_for
    from verl_tui.health.guide_settings import load_guide

    try:
        load_guide(config.guide)
        settings_for(config)
    except ValueError as error:
        raise ConfigError(f"{config_path(path)}: {error}") from error


def need_terminal(paths: Sequence[str] = ()) -> None:
    """Refuse to start without a terminal, before Textual is imported: it would wait for one."""
    from verl_tui.sources import pipe

    keys = pipe.has_keys() if piped(paths) else sys.stdin.isatty()
    if os.environ.get("TEXTUAL_DRIVER"):
        return  # what draws elsewhere, such as textual-serve, has said so
    if os.environ.get("TERM") in ("dumb", "unknown"):
        why = f"this terminal (TERM={os.environ['TERM']}) cannot be drawn on"
    elif keys and sys.stdout.isatty():
        return
    else:
        why = "this is not a terminal"
    raise CommandError(
        f"{why}: use `verl-tui check PATH` for a report, or `--snapshot FILE.svg` for a picture",
        EXIT_NOTHING,
    )
