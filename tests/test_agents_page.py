"""The page for agents: what it names exists, and it is written where agents look for skills."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml
from command_line import complaint, write_log

from verl_tui.cli import build_parser, main, read
from verl_tui.commands.help import agents_page
from verl_tui.guard import BREAKERS
from verl_tui.health.guide_settings import load_guide
from verl_tui.indicators import INDICATORS
from verl_tui.runs.views.state import State

PAGE = agents_page()
IN_BLOCKS = re.findall(r"^    (verl-tui .+?)(?:  +#.*)?$", PAGE, re.MULTILINE)
IN_SENTENCES = re.findall(r"`(verl-tui .+?)`", PAGE)
NAMED = set(re.findall(r"`([^`\n]+)`", PAGE)) - set(IN_SENTENCES)
CONDITIONS = set(re.findall(r"['`](\S+[=<>]\S+)['`]", PAGE))
REFERENCE = (Path(__file__).parents[1] / "verl_tui/commands/README.md").read_text(
    encoding="utf-8"
)


def test_it_is_short():
    assert len(PAGE) <= 6000, "at four characters a token, 1,500 tokens"
    assert len(IN_BLOCKS) >= 12
    code = re.findall(r"^    .+", PAGE, re.MULTILINE)
    assert max(map(len, code)) <= 80, "a comment that goes on below is no comment"


@pytest.mark.parametrize("line", [*IN_BLOCKS, *IN_SENTENCES])
def test_every_command_line_makes_sense(line):
    read(shlex.split(line)[1:])


def test_every_name_is_one_of_the_product():
    """Of a finding, a state, an indicator, else one that the reference has."""
    known = {rule.id for rule in load_guide().rules} | {one.value for one in State}
    known |= {*build_parser().commands, *INDICATORS}
    known |= {"healthy", "warning", "critical", "info", "no warning"}
    for name in NAMED - known - CONDITIONS:
        assert re.search(rf"(?<!\w){re.escape(name)}(?!\w)", REFERENCE), name


@pytest.mark.parametrize("condition", sorted(CONDITIONS))
def test_every_condition_can_be_waited_for(condition, tmp_path):
    log = write_log(tmp_path, *[0.02] * 8)
    words = ["get", "state", str(log), "--wait", condition, "--timeout", "0.1"]
    assert main(words) == 4, "it does not hold yet, and it may"


def test_a_run_is_stopped_for_nothing_that_is_not_critical():
    stop, _, rest = PAGE.partition("## Stop")[2].partition("\n2. ")
    rules = load_guide().rules
    critical = {rule.id for rule in rules if rule.severity.word == "critical"}
    named = {rule.id for rule in rules if f"`{rule.id}`" in stop}
    assert {*BREAKERS, "policy-collapse", "not-finite"} == named <= critical
    assert "Never stop a run for" in rest


def test_exit_codes_are_those_that_the_commands_state():
    commands = build_parser().commands
    check, state = commands["check"], commands["get"].commands["state"]
    for command, begins, ends in (
        (check, "Exit codes of `check`", "From"),
        (state, "Exit codes of `--wait`", "Events"),
    ):
        said = PAGE.partition(begins)[2].partition(ends)[0]
        for code in re.findall(r"\b(\d+) \w+", said):
            assert re.search(rf"\b{code} ", command.format_help()), code


# -- the skill -------------------------------------------------------------------------------------


def test_the_skill_is_the_page_with_the_head_of_a_skill(tmp_path):
    for _ in range(2):  # what is there is replaced
        skills = str(tmp_path / "new" / "skills")
        assert main(["help", "agents", "--skill", skills]) == 0
        path = tmp_path / "new" / "skills" / "verl-tui" / "SKILL.md"
        _, head, page = path.read_text(encoding="utf-8").split("---\n", 2)
        fields = yaml.safe_load(head)
        assert fields.keys() == {"name", "description"}
        assert fields["name"] == path.parent.name
        assert 100 < len(fields["description"]) <= 1024
        assert page == PAGE
        path.write_text("old", encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["agents", "--skill", "linked"], 73, "is a link, and nothing is written through one"),
        (["agents", "--skill", "file-linked"], 73, "is a link, and nothing is written through one"),
        (["agents", "--skill", "file"], 73, "not a directory"),
        (["agents", "--skill", "taken"], 73, "file exists"),
        (["keys", "--skill", "x"], 64, "help agents --skill DIR"),
        (["--skill", "x"], 64, "help agents --skill DIR"),
    ],
)  # fmt: skip
def test_nothing_is_written_elsewhere(
    words, code, sentence, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for folder in ("elsewhere", "linked", "file-linked/verl-tui", "taken"):
        Path(folder).mkdir(parents=True)
    for file in ("file", "elsewhere/kept", "taken/verl-tui"):
        Path(file).write_text("kept", encoding="utf-8")
    Path("linked/verl-tui").symlink_to(tmp_path / "elsewhere")
    Path("file-linked/verl-tui/SKILL.md").symlink_to(tmp_path / "elsewhere/kept")
    assert main(["help", *words]) == code
    assert sentence.lower() in complaint(capsys).lower()
    assert [path.name for path in Path("elsewhere").iterdir()] == ["kept"]
    assert Path("elsewhere/kept").read_text(encoding="utf-8") == "kept"
