"""The command line: which command is meant, what it exits with, and one clear sentence where it
cannot go on.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from command_line import complaint, python

import verl_tui
from verl_tui import commands
from verl_tui.cli import build_parser, main, read
from verl_tui.commands import export, watch
from verl_tui.given_files import UsageError

# -- which command ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "paths"),
    [
        (["a", "b"], ["a", "b"]),
        (["watch", "a"], ["a"]),
        (["--ascii", "a"], ["a"]),
        (["a", "--no-mouse", "b"], ["a", "b"]),
        (["--size", "80x24", "--config", "c", "a"], ["a"]),
        (["--size=80x24", "a"], ["a"]),
        (["./check"], ["./check"]),
        (["./chek"], ["./chek"]),
        (["checkpoints"], ["checkpoints"]),
        (["a", "check"], ["a", "check"]),
        (["--", "check", "--json"], ["check", "--json"]),
        (["-"], ["-"]),
        (["http://host:9090"], ["http://host:9090"]),
    ],
)
def test_watching_needs_no_name(argv, paths):
    options = read(argv)
    assert options.execute is watch.run
    assert options.paths == paths


@pytest.mark.parametrize(
    "argv",
    [
        ["--frobnicate", "a"],
        ["check", "--frobnicate", "a"],
        ["export"],
        ["export", "xml", "a"],
        ["a", "--size", "wide"],
        ["a", "--size", "3x3"],
        ["a", "--snapshot", "frame.png"],
        ["--snap", "frame.svg", "a"],
        ["demo", "--pace", "0"],
        ["demo", "--pace", "soon"],
        ["demo", "--seed", "x"],
        ["guide", "a"],
        ["chek", "a"],
        ["--ascii", "reply"],
    ],
)
def test_what_makes_no_sense_exits_64(argv, capsys):
    with pytest.raises(UsageError):
        read(argv)
    assert main(argv) == 64
    assert "see `verl-tui " in complaint(capsys)


TAKING_PATHS = [
    "", "check", "guard", "compare", "replay", "web", "doctor", "watch", "notify --show",
    "report -o x.html", "bundle -o x.zip", "export csv", "export tensorboard -o x",
    "export prometheus", *(f"get {one}" for one in ["state", "metrics", "samples", "log", "findings", "runs"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "words"),
    [
        *((command, ["a", ""]) for command in TAKING_PATHS),
        *(("check", words) for words in ([""], [" \t"], ["a", "--config", ""])),
        ("check", ["a", "--config= "]),
    ],
)
def test_an_empty_path_is_no_directory(command, words, capsys):
    assert main([*command.split(), *words]) == 64
    assert "is empty: is a variable not set?" in complaint(capsys)


def test_the_command_of_a_guard_may_have_empty_words(tmp_path):
    argv = ["guard", str(tmp_path), "--", "sh", "-c", ""]
    assert read(argv).command == ["sh", "-c", ""]
    assert main(["guard", "", "--", "sh"]) == 64


_ADDED = """HELP = '''
Greets whoever reads this.

--loud  in capitals

exit codes: 0 done'''

def run(options):
    print("HELLO" if options.loud else "hello")
    return 0
"""


@pytest.mark.parametrize(("package", "words"), [(commands, []), (export, ["export"])])
def test_a_new_module_is_a_command_with_help_and_completion(
    package, words, tmp_path, monkeypatch, asked, capsys
):
    (tmp_path / "hello.py").write_text(_ADDED, encoding="utf-8")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    # taken away again afterwards
    monkeypatch.setattr(package, "hello", None, raising=False)
    name = f"{package.__name__}.hello"
    monkeypatch.setitem(sys.modules, name, ModuleType(name))
    del sys.modules[name]
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    assert "hello" in (text := capsys.readouterr().out)
    assert "greets whoever reads this" in text
    script = asked("--print-completion", "bash", code=0).out
    assert "hello" in script
    assert "--loud" in script
    assert asked(*words, "hello", "--loud", code=0).out == "HELLO\n"


@pytest.mark.parametrize(
    "command", [name for name in build_parser().commands if name != "watch"]
)
def test_every_command_is_in_the_readme(command):
    root = Path(verl_tui.__file__).parents[1]
    pages = (root / "README.md", root / "verl_tui/commands/README.md")
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert f"verl-tui {command}" in text


# -- export, guide, config -------------------------------------------------------------------------


def test_export_to_standard_output_and_to_a_file(log, tmp_path, asked):
    path, out = log(0.02, 0.021), tmp_path / "out.csv"
    text = "step,rollout/reward_mean,rollout/kl_div\n1,2.51,0.02\n2,2.52,0.021\n"
    assert asked("export", "csv", path) == (0, text, "")
    assert asked("export", "csv", path, "-o", out) == (0, "", f"wrote {out}\n")
    assert out.read_text(encoding="utf-8") == text


def test_export_of_several_runs(log, tmp_path, asked):
    log(0.02, name="a")
    log(0.03, name="b")
    said = "2 runs (a, b) cannot go into one file: name a directory with -o"
    logs, out = tmp_path / "logs", tmp_path / "out"
    assert asked("export", "csv", logs) == (64, "", f"verl-tui: {said}\n")
    assert asked("export", "csv", logs, "-o", out).code == 0
    assert sorted(path.name for path in out.iterdir()) == ["a.csv", "b.csv"]


def test_the_guide_is_alerts_and_a_dashboard_too(tmp_path, asked):
    mine = tmp_path / "mine.toml"
    mine.write_text("[guide.rules.kl-high]\nthreshold = 0.345\n", encoding="utf-8")
    words = ("guide", "--format", "prometheus", "--step", "10", "--config", mine)
    text = asked(*words).out
    assert "alert: VerlKlHigh" in text
    assert "[125s]) > 0.345" in text
    assert json.loads(asked("guide", "--format", "grafana").out)["panels"]


def test_config_prints_where_and_what(tmp_path, asked):
    mine = tmp_path / "mine.toml"
    mine.touch()
    text = asked("config", "--config", mine).out
    assert text.startswith(f"# {mine}\n")
    assert "\n#refresh = 0.5\n" in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("refrsh = 1", "unknown key `refrsh`; did you mean refresh?"),
        ("[guide.rules.kl-high]\nthreshold = 'x'", '`guide.rules.kl-high.threshold` must be a number, not "x"'),
        ("[guide]\nsilence = ['nonsense']", "`guide.silence` must name rules: there is no nonsense"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["check", "watch", "export prometheus"])
def test_a_broken_configuration_stops_every_command(
    command, text, said, tmp_path, log, capsys
):
    mine = tmp_path / "mine.toml"
    mine.write_text(text, encoding="utf-8")
    words = [*command.split(), str(log(0.02)), "--config", str(mine)]
    assert main(words) == 64
    assert complaint(capsys) == f"{mine}: {said}"


def test_threads_that_still_read_do_not_hold_up_the_end():
    """Python's own shutdown would end them in the middle of native code, which aborts."""
    program = """
import atexit, threading, time
from verl_tui import __main__
def main(ready):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    atexit.register(print, "shut down by Python")
    print("said")
    return 7
__main__.main = main
__main__.run()
"""
    done = python("-c", program)
    assert (done.returncode, done.stdout) == (7, "said\n")


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads as Linux does")
def test_numpy_starts_no_threads_and_may_in_what_a_guard_starts():
    """A guard may start the training again, and numpy has one for each core otherwise."""
    program = """
import os, sys
from verl_tui import __main__, guard
import numpy
told = "import os, sys; sys.exit(os.environ.get('OPENBLAS_NUM_THREADS') == '7')"
started = guard.start([sys.executable, "-c", told], {})
print(len(os.listdir("/proc/self/task")), started.wait())
"""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "7"}
    assert python("-c", program, env=environment).stdout == "1 1\n"


def test_the_version_needs_no_command(monkeypatch, capsys):
    monkeypatch.setattr("verl_tui.cli.commands_of", lambda *_: pytest.fail("it looks"))
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out.startswith("verl-tui ")


def test_without_an_address_nothing_that_sends_is_imported():
    code = (
        "import sys; from verl_tui.commands.shared import notifier_for;"
        "from verl_tui.config import Config;"
        "print(notifier_for(Config(), 'watch'), sorted({'http.client', 'ssl'} & {*sys.modules}))"
    )
    assert python("-c", code).stdout == "None []\n"
