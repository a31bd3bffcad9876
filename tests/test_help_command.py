"""The manual: topics, pages beside the code as text, the pager, and what every `--help` says."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from file_writing import write_file

from verl_tui.cli import build_parser, main
from verl_tui.commands.help import TOPICS
from verl_tui.health.guide_settings import load_guide
from verl_tui.indicators import INDICATORS
from verl_tui.pages import as_text, page_table
from verl_tui.sources.formats.catalog import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from verl_tui.commands.arguments import CommandParser


@pytest.fixture(autouse=True)
def surroundings(tmp_path, monkeypatch):
    """An empty configuration, no pager, 80 columns."""
    config = write_file(tmp_path / "config.toml", "")
    monkeypatch.setenv("VERL_TUI_CONFIG", str(config))
    monkeypatch.setenv("PAGER", "")
    monkeypatch.setenv("COLUMNS", "80")
    return config


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["help", *words]) == 0
    return capsys.readouterr().out


def leaves(parser: CommandParser) -> Iterator[CommandParser]:
    for command in parser.commands.values():
        yield command
        yield from leaves(command)


COMMANDS = [*leaves(build_parser())]


# -- topics ----------------------------------------------------------------------------------------


def test_without_a_topic_all_are_listed(capsys):
    text = said(capsys)
    assert all(f"\n  {name} " in text for name in TOPICS)
    assert all(name in text for name in build_parser().commands)
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("columns", [40, 140])
def test_every_topic_fits_the_terminal(topic, columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(columns))
    text = said(capsys, topic)
    assert text.count("\n") > 20
    assert max(map(len, text.splitlines())) <= columns
    assert "\x1b" not in text
    assert "](" not in text
    assert "![" not in text


@pytest.mark.parametrize(
    ("topic", "words"),
    [
        ("keys", ["ctrl+p", "look.log", "chart.next", "replay.faster", "Signs in charts"]),
        ("formats", [format_.name for format_ in FORMATS]),
        ("rules", [rule.id for rule in load_guide().rules]),
        ("metrics", [*INDICATORS, "actor/ppo_kl"]),
        ("states", ["stalled", "crashed"]),
        ("configuration", ["#refresh = 0.5"]),
        ("commands", ["exit code", "last_record_age_s", "VERL_TUI_RUN"]),
    ],
)  # fmt: skip
def test_topics_say_all_that_there_is(topic, words, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "300")
    text = said(capsys, topic).lower()
    assert [word for word in words if word.lower() not in text] == []


def test_a_rule_is_explained_as_it_is_in_force(surroundings, capsys):
    surroundings.write_text("[guide.rules.kl-high]\nthreshold = 0.345\n")
    text = said(capsys, "kl-high")
    begins = "kl-high (warning)\n    policy_kl: above, threshold 0.345, over "
    assert text.startswith(begins)
    assert "ref-kl-high" not in text


@pytest.mark.parametrize(
    ("word", "near"),
    [("keyz", "keys"), ("chek", "check"), ("kl-hihg", "kl-high"), ("qqqq", "formats")],
)
def test_an_unknown_topic_names_the_nearest(word, near, asked):
    error = asked("help", word, code=64).err
    assert error.count("\n") == 1
    assert near in error


def test_a_broken_configuration_is_said_and_costs_nothing(surroundings, asked):
    surroundings.write_text("refrsh = 1\n", encoding="utf-8")
    caught = asked("help", "configuration", code=0)
    assert "did you mean refresh?" in caught.err
    assert "#refresh = 0.5" in caught.out


# -- pages -----------------------------------------------------------------------------------------


def test_markdown_becomes_plain_text():
    table = page_table(["x"], [["a|b*c"]])
    text = as_text(f"# Title\n\nWords with `code`.\n\n    a  b\n\n{table}", 30)
    assert text == "Title\n\nWords with code.\n\n    a  b\n\n x\n ─────\n a|b*c\n"


# -- the pager -------------------------------------------------------------------------------------


def pager(tmp_path: Path, name: str) -> str:
    """Return a pager that says that it was asked, with which words, before what it is given."""
    path = write_file(tmp_path / name, '#!/bin/sh\necho "paged $*"\ncat\n')
    path.chmod(0o755)
    return str(path)


def like_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make standard output look like a terminal of 24 rows."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("LINES", "24")


@pytest.mark.parametrize(
    ("topic", "name", "begins"),
    [
        ("states", "mine", "paged --quietly\nStates of a run"),
        ("states", "missing", "\x1b[1;4mStates of a run"),
        ("policy_kl", "mine", "policy_kl (policy KL)"),
    ],
)
def test_a_page_longer_than_the_terminal_goes_through_the_pager(
    topic, name, begins, tmp_path, monkeypatch, capfd
):
    pager(tmp_path, "mine")
    like_a_terminal(monkeypatch)
    monkeypatch.setenv("PAGER", f"{tmp_path / name} --quietly")
    assert main(["help", topic]) == 0
    assert capfd.readouterr().out.startswith(begins)


# -- every --help, and command lines that make no sense --------------------------------------------


@pytest.mark.parametrize("command", COMMANDS, ids=[one.prog for one in COMMANDS])
def test_every_help_has_a_sentence_examples_and_exit_codes(command):
    assert command.description
    assert command.description[0].isupper()
    assert command.description.endswith(".")
    text = command.format_help()
    examples = text.partition("\nfor example:\n")[2].partition("\n\n")[0].splitlines()
    assert examples
    assert all("verl-tui" in line for line in examples)
    assert ("\nexit codes: 0 " in text) == (not command.commands)


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["check", "--jsn", "x"], "has no option --jsn; did you mean --json?"),
        (["--snapshto=a.svg", "x"], "has no option --snapshto; did you mean --snapshot?"),
        (["--against", "a", "x"], "`verl-tui watch` has no option --against; see"),
        (["check", "--frobnicate"], "`verl-tui check` has no option --frobnicate; see"),
        (["compare", "--align", "stp"], "--align: there is no stp; did you mean step?"),
        (["compare", "--align", "x"], "--align: there is no x; choose from end, step, time"),
        (["export", "cvs", "x"], "there is no cvs; did you mean csv?"),
        (["guide", "a"], "`verl-tui guide` does not take a"),
        (["help", "clip"], "did you mean clip_fraction or clip-saturation?"),
    ],
)  # fmt: skip
def test_a_mistyped_word_gets_the_nearest(argv, sentence, asked):
    error = asked(*argv, code=64).err
    assert error.count("\n") == 1
    assert sentence in error
