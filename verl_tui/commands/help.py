"""`verl-tui help`: the manual, without a network."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from verl_tui.commands.arguments import CommandError
from verl_tui.commands.options import (
    config_option,
    configuration,
    finding_ids,
    indicator_ids,
)
from verl_tui.commands.output import print_message
from verl_tui.commands.topics import TOPICS, ascii_only, describe_indicator
from verl_tui.config import Config, ConfigError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.commands.arguments import CommandParser
NAME = "help"
HELP = "the manual: keys, formats, rules, metrics, configuration, commands"
EXAMPLES = ("verl-tui help keys", "verl-tui help kl-high", "verl-tui help export csv")
EXITS = "0 done"


def options(parser: CommandParser) -> None:
    """Add its options."""
    named = "topic, command, or the id of a finding or an indicator; none: the list of topics"
    parser.add_argument("topic", nargs="*", metavar="TOPIC", help=named)
    config_option(parser)
    parser.set_defaults(parser=parser)


def run(options: argparse.Namespace) -> int:
    """Show a page; return the exit code."""
    from verl_tui.commands.paging import show

    config = _config(options)
    text = _text(options.topic, options.parser.program, config)
    if ascii_only(config):
        from verl_tui.rendering.text.ascii_table import in_ascii

        text = in_ascii(text)
    show(text)
    return 0


def _config(options: argparse.Namespace) -> Config:
    """Return the configuration; the default one in place of a faulty one, since help is needed
    then.
    """
    try:
        return configuration(options)
    except ConfigError as error:
        print_message(str(error))
        return Config()


def _text(words: Sequence[str], program: CommandParser, config: Config) -> str:
    """Return the page that some words name."""
    if not words:
        return _topics(program)
    command = _command(program, words)
    if command is not None:
        return command.format_help()
    name = " ".join(words)
    if name in TOPICS:
        return _page(TOPICS[name].page(config))
    if name in finding_ids():
        return _wrapped(_rule(name, config))
    if name in indicator_ids():
        return _wrapped(describe_indicator(name).splitlines())
    known = (*TOPICS, *program.commands, *finding_ids(), *indicator_ids())
    near = " or ".join(get_close_matches(name, known, 3, 0.5))
    meant = f"did you mean {near}?" if near else f"the topics are {', '.join(TOPICS)}"
    raise CommandError(f"help {name}: there is no such topic; {meant}")


def _topics(program: CommandParser) -> str:
    import textwrap

    from verl_tui.commands.paging import terminal_width

    wide = max(map(len, TOPICS))
    names = textwrap.fill(
        ", ".join(program.commands),
        terminal_width(),
        initial_indent="  ",
        subsequent_indent="  ",
    )
    topics = (
        f"  {name.ljust(wide)}  {topic.words}\n" for name, topic in TOPICS.items()
    )
    return (
        "verl-tui help TOPIC\n\n"
        f"{''.join(topics)}\n"
        "verl-tui help COMMAND: its options, with examples\n\n"
        f"{names}\n\n"
        "verl-tui help ID: a finding such as kl-high, an indicator such as policy_kl\n"
    )


def _command(program: CommandParser, words: Sequence[str]) -> CommandParser | None:
    """Return the parser of the command that is named, such as `export csv`; None if none is."""
    found = program
    for word in words:
        if word not in found.commands:
            return None
        found = found.commands[word]
    return found


def _page(markdown: str) -> str:
    from verl_tui.commands.paging import styled, terminal_width
    from verl_tui.pages import as_text

    return as_text(markdown, terminal_width(), styled=styled())


def _rule(id: str, config: Config) -> Iterator[str]:
    """Return the description of the rules with an id, as they are in force."""
    from verl_tui.exporters.guide import describe
    from verl_tui.health.guide_settings import load_guide

    return describe(load_guide(config.guide), id)


def _wrapped(lines: Iterable[str]) -> str:
    """Return lines in the width of the terminal."""
    import textwrap

    from verl_tui.commands.paging import terminal_width

    wide = terminal_width()
    below = " " * 8
    return "".join(
        f"{textwrap.fill(line, wide, subsequent_indent=below)}\n" for line in lines
    )
