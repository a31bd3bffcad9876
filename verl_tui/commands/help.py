"""`verl-tui help`: the manual, without a network: pages that are installed beside the code, and
pages made from the declarations that the program itself uses.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui.commands.shared import (
    Options,
    colour,
    guide_of,
    print_message,
    writing,
)
from verl_tui.config import Config, ConfigError, documented_defaults
from verl_tui.given_files import NO_LINK, OutputError, UsageError, is_link, replacing
from verl_tui.indicators import INDICATORS, Indicator, spellings
from verl_tui.rendering.text.ascii_table import ascii_locale, in_ascii
from verl_tui.words import nearest

if TYPE_CHECKING:
    from verl_tui.commands.arguments import CommandParser

HELP = """
The manual: keys, formats, rules, metrics, configuration, commands.

--skill DIR  write the topic agents as DIR/verl-tui/SKILL.md; what is there is replaced
TOPIC...  topic, command, or the id of a finding or an indicator; none: the list of topics
--config FILE

for example:
    verl-tui help keys
    verl-tui help kl-high
    verl-tui help export csv

exit codes: 0 done
"""


_SKILL = Path(__file__).with_name("SKILL.md")
"""The page for agents, with the head that the form of skills asks for."""
_DIRECTIONS = {
    "up": "more is better",
    "down": "less is better",
    "near": "has a healthy band",
}


def run(options: Options) -> int:
    """Show a page, or write it; return the exit code."""
    if options.skill is not None:
        if options.topics != ["agents"]:
            raise UsageError("--skill is of one topic: help agents --skill DIR")
        return _write_skill(options.skill)
    try:
        config = options.settings
    except ConfigError as error:  # help is needed then
        print_message(str(error))
        config = Config()
    show(manual(options.topics, options.program, config), config)
    return 0


def _write_skill(directory: Path) -> int:
    """Write the page for agents where they look for skills; return the exit code."""
    path = directory / "verl-tui" / _SKILL.name
    if is_link(path.parent):
        raise OutputError(f"{path.parent}: {NO_LINK}")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(_SKILL.read_text(encoding="utf-8"))
    print(f"wrote {path}")
    return 0


def agents_page() -> str:
    """Return the page for agents, in Markdown."""
    return _SKILL.read_text(encoding="utf-8").split("---\n", 2)[2]


def finding_ids() -> Iterable[str]:
    """Return the ids of all possible findings."""
    return dict.fromkeys(rule.id for rule in guide_of(Config()).rules)


def manual(words: Sequence[str], program: CommandParser, config: Config) -> str:
    """Return the page that some words name."""
    if not words:
        return _topics(program)
    command: CommandParser | None = program
    for word in words:
        command = command and command.commands.get(word)
    if command:
        return command.format_help()
    name = " ".join(words)
    if name in TOPICS:
        return _topic(name, config)
    if name in finding_ids():
        from verl_tui.exporters.guide import describe

        return _wrapped(describe(guide_of(config), name))
    if name in INDICATORS:
        return _wrapped(_indicator(name))
    raise UsageError(f"help {name}: there is no such topic; {_meant(name, program)}")


def _meant(name: str, program: CommandParser) -> str:
    """Ask for the topics that have a word, else those that are written nearly alike."""
    known = (*TOPICS, *program.commands, *finding_ids(), *INDICATORS)
    if parts := [one for one in known if name in one.replace("_", "-").split("-")]:
        return nearest(name, parts, len(parts), 0.0)
    return nearest(name, known, cutoff=0.5) or f"the topics are {', '.join(TOPICS)}"


def _topic(name: str, config: Config) -> str:
    from verl_tui.pages import as_text, page

    _, source = TOPICS[name]
    markdown = page(source) if isinstance(source, str) else source(config)
    pager = _pager()
    styled = colour() and (not pager or _is_less(pager))
    return as_text(markdown, _width(), styled=styled)


def _topics(program: CommandParser) -> str:
    wide = max(map(len, TOPICS))
    topics = "".join(
        f"  {name:<{wide}}  {words}\n" for name, (words, _) in TOPICS.items()
    )
    commands = textwrap.fill(
        ", ".join(program.commands),
        _width(),
        initial_indent="  ",
        subsequent_indent="  ",
    )
    return (
        f"verl-tui help TOPIC\n\n{topics}\n"
        f"verl-tui help COMMAND: its options, with examples\n\n{commands}\n\n"
        "verl-tui help ID: a finding such as kl-high, an indicator such as policy_kl\n"
    )


def _wrapped(lines: Iterable[str]) -> str:
    """Return lines in the width of the terminal."""
    fill = partial(textwrap.fill, width=_width(), subsequent_indent=" " * 8)
    return "".join(f"{fill(line)}\n" for line in lines)


def _keys(config: Config) -> str:
    from verl_tui.tui.app import VerlApp
    from verl_tui.tui.screens.help import all_keys

    return all_keys(VerlApp, config.keys)


def _configuration(_: Config) -> str:
    return (
        "# Configuration\n\n`verl-tui config` prints where the file is: `config.toml` in your "
        "configuration directory, `$VERL_TUI_CONFIG`, or `--config FILE`. These are all settings "
        f"with their defaults:\n\n```\n{documented_defaults()}```\n"
    )


def _metrics(_: Config) -> str:
    from verl_tui.pages import page_table

    every = INDICATORS.values()
    meanings = (
        (one.id, one.label, one.unit, _DIRECTIONS.get(one.direction, ""))
        for one in every
    )
    names = ((one.id, _names(one)) for one in every)
    head = (
        "# Indicators\n\nMetrics that several frameworks log under names of their own. The ids can "
        "stand wherever a metric is named: in the configuration, in `--best-by`, in `--on-best`, "
        "in rules of your own."
    )
    parts = (
        head,
        page_table(("id", "means", "unit", "direction"), meanings),
        "## Names in logs",
        "Of several names in one log the first of the list is taken.",
        page_table(("id", "names in logs"), names),
    )
    return "\n\n".join(parts) + "\n"


def _indicator(id: str) -> Iterable[str]:
    """Describe an indicator, one fact per line."""
    one = INDICATORS[id]
    rules = (rule.id for rule in guide_of(Config()).rules if rule.indicator == id)
    facts = {
        "unit": one.unit,
        "direction": _DIRECTIONS.get(one.direction, ""),
        "names in logs": _names(one),
        "checked by": ", ".join(dict.fromkeys(rules)),
    }
    yield f"{one.id} ({one.label})"
    yield from (f"    {fact}: {words}" for fact, words in facts.items() if words)


def _names(one: Indicator) -> str:
    otherwise = "scores below val-core/, val/, eval/ and the like"
    return ", ".join(spellings(one.id)) or otherwise


TOPICS: Mapping[str, tuple[str, str | Callable[[Config], str]]] = {
    "keys": ("every key, with the ones you have set, and the signs in charts", _keys),
    "screens": ("the screens and what their keys do, in words", "tui"),
    "formats": ("what is read, how it is recognised, what it gives", "sources"),
    "states": ("running, stalled, crashed: how they are recognised", "runs"),
    "rules": ("the health rules and diagnoses", "health"),
    "metrics": ("indicators, and their names in logs", _metrics),
    "configuration": ("every setting with its default", _configuration),
    "commands": ("commands without a screen: exit codes, JSON fields, CSV columns", "commands"),
    "agents": ("for a program that watches runs: what to ask, when to stop one",
        lambda _: agents_page()),
}  # fmt: skip
"""Name -> a line for the list, and the folder whose README is the page, or what makes it in
Markdown; in the order of the list.
"""


def _width() -> int:
    """Return the cells of a line of the terminal, 80 where there is none."""
    return max(20, shutil.get_terminal_size().columns)


def show(text: str, config: Config) -> None:
    """Write a text to standard output; on a terminal that is lower than the text through a pager:
    `$PAGER`, else `less`, where one of them is there.
    """
    if ascii_locale() if config.ascii is None else config.ascii:
        text = in_ascii(text)
    pager = _pager()
    fits = text.count("\n") < shutil.get_terminal_size().lines
    if fits or not pager or not sys.stdout.isatty():
        print(text, end="")
        return
    # ctrl+c is the pager's, which goes on
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    data = text.encode(sys.stdout.encoding or "utf-8", "replace")
    # The user's own $PAGER, through no shell.
    subprocess.run(  # noqa: S603
        [*pager, *["-R"] * _is_less(pager)],
        input=data,
        env={"LESS": "-FR", **os.environ},
        check=False,
    )
    signal.signal(signal.SIGINT, before)


def _pager() -> list[str]:
    """Return the command of the user's pager, empty for none."""
    words = os.environ.get("PAGER", "less").split()
    if os.environ.get("TERM") == "dumb" or not words or not shutil.which(words[0]):
        return []
    return words


def _is_less(pager: list[str]) -> bool:
    return os.path.basename(pager[0]) == "less"  # noqa: PTH119 - a command, which may be no path
