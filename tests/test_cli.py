"""The command line: which command is meant, what it exits with, and one clear sentence where it
cannot go on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from ordinary_rights import ordinary_rights

import verl_tui
from verl_tui import commands
from verl_tui.cli import build_parser, main
from verl_tui.commands import check, config, demo, exports, guide, watch
from verl_tui.commands.arguments import DEFAULT, CommandError
from verl_tui.commands.exports import csv, prometheus
from verl_tui.config import Config
from verl_tui.demo import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Watch = list[tuple[list[str], Config, dict[str, Any]]]


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty configuration, and no terminal."""
    config = tmp_path / "config.toml"
    config.write_text("", encoding="utf-8")
    monkeypatch.setenv("VERL_TUI_CONFIG", str(config))
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., Path]:
    """Return a writer of tutorial logs: one value of policy KL a step."""

    def write(*kl: float, name: str = "run") -> Path:
        path = tmp_path / "logs" / name / "verl_logs.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        records = [
            {
                "scope": "rollout",
                "step": step,
                "reward_mean": 2.5 + 0.01 * (step % 3),
                "kl_div": value,
            }
            for step, value in enumerate(kl, 1)
        ]
        path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        return path

    return write


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Record what the app would be started with, on what looks like a terminal."""
    calls: Watch = []

    def watch(specs: Sequence[str], config: Config, **how: Any) -> int:
        calls.append((list(specs), config, how))
        return 0

    monkeypatch.setattr("verl_tui.tui.watch", watch)
    for name in ("watch", "replay", "demo"):
        monkeypatch.setattr(f"verl_tui.commands.{name}.need_terminal", lambda paths=(): None)
    return calls


def run(*argv: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "verl_tui", *argv]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **settings
    )


def complaint(capsys: pytest.CaptureFixture[str]) -> str:
    """Return what was said on standard error: exactly one line."""
    text = capsys.readouterr().err
    assert text.startswith("verl-tui: ")
    assert text.count("\n") == 1
    return text.removeprefix("verl-tui: ").rstrip()


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
def test_watching_needs_no_name(argv: list[str], paths: list[str]) -> None:
    options = build_parser().read(argv)
    assert options.run is watch.run
    assert options.paths == paths


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["check", "a"], check.run),
        (["--config", "c", "check", "a"], check.run),
        (["check", "a", "--json"], check.run),
        (["export", "csv", "a", "-o", "b", "c"], csv.run),
        (["export", "prometheus", "a", "--port", "0", "b"], prometheus.run),
        (["demo"], demo.run),
        (["guide"], guide.run),
        (["config"], config.run),
    ],
)
def test_commands_are_found(argv: list[str], command: object) -> None:
    assert build_parser().read(argv).run is command


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
def test_what_makes_no_sense_exits_64(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CommandError):
        build_parser().read(argv)
    assert main(argv) == 64
    assert "see `verl-tui " in complaint(capsys)


@pytest.mark.parametrize("argv", [[], ["check"], ["export", "csv"], ["--ascii"]])
def test_without_a_path_there_is_an_example(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 64
    said = complaint(capsys)
    assert "for example: verl-tui " in said
    assert "verl-tui demo" in said


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"verl-tui {verl_tui.__version__}\n"


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert all(f"    {name} " in text for name in build_parser().commands)
    assert "PATH..." in text


_ADDED = """
NAME = "hello"
HELP = "greets whoever reads this"

def options(parser):
    parser.add_argument("--loud", action="store_true")

def run(options):
    print("HELLO" if options.loud else "hello")
    return 0
"""


@pytest.mark.parametrize(("package", "words"), [(commands, []), (exports, ["export"])])
def test_a_new_module_is_a_command_with_help_and_completion(
    package: ModuleType,
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "hello.py").write_text(_ADDED, encoding="utf-8")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    monkeypatch.setattr(package, "hello", None, raising=False)  # taken away again afterwards
    name = f"{package.__name__}.hello"
    monkeypatch.setitem(sys.modules, name, ModuleType(name))
    del sys.modules[name]
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    assert "hello" in (text := capsys.readouterr().out)
    assert "greets whoever reads this" in text
    assert main(["--print-completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert "hello" in script
    assert "--loud" in script
    assert main([*words, "hello", "--loud"]) == 0
    assert capsys.readouterr().out == "HELLO\n"


@pytest.mark.parametrize("command", [name for name in build_parser().commands if name != DEFAULT])
def test_every_command_is_in_the_readme(command: str) -> None:
    root = Path(verl_tui.__file__).parents[1]
    pages = (root / "README.md", root / "verl_tui/commands/README.md")
    assert any(f"verl-tui {command}" in page.read_text(encoding="utf-8") for page in pages)


@pytest.mark.parametrize("kind", [*build_parser().commands["export"].commands])
def test_every_export_is_in_the_readme(kind: str) -> None:
    root = Path(verl_tui.__file__).parents[1]
    page = (root / "verl_tui/commands/README.md").read_text(encoding="utf-8")
    assert f"verl-tui export {kind}" in page


# -- watch and demo --------------------------------------------------------------------------------


def test_watch_hands_on_what_was_asked(
    log: Callable[..., Path], watched: Watch, tmp_path: Path
) -> None:
    path = str(log(0.02))
    assert main(["--ascii", path, "--no-mouse"]) == 0
    assert main([path, "--snapshot", str(tmp_path / "a.svg"), "--size", "80x24"]) == 0
    (specs, config, how), (_, plain, drawn) = watched
    assert specs == [path]
    assert (config.ascii, config.mouse) == (True, False)
    assert how == {"snapshot": None, "size": (120, 40), "notifier": None}
    assert (plain.ascii, plain.mouse) == (None, True)
    assert drawn == {"snapshot": tmp_path / "a.svg", "size": (80, 24), "notifier": None}


def test_watch_waits_for_what_may_come(tmp_path: Path, watched: Watch) -> None:
    assert main([str(tmp_path / "run_*")]) == 0
    assert len(watched) == 1


def test_watch_warns_of_paths_that_lead_nowhere(
    log: Callable[..., Path], watched: Watch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(log(0.02)), "/nonexistent"]) == 0
    assert complaint(capsys) == "/nonexistent: no such file or directory"
    assert len(watched) == 1


def test_watch_of_nothing_exits_3(watched: Watch, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["/nonexistent"]) == 3
    assert complaint(capsys) == "/nonexistent: no such file or directory"
    assert watched == []


def test_a_snapshot_that_cannot_be_written(
    log: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def watch(specs: Sequence[str], config: Config, *, snapshot: Path, **how: Any) -> int:
        snapshot.write_text("", encoding="utf-8")
        return 0

    monkeypatch.setattr("verl_tui.tui.watch", watch)
    assert main([str(log(0.02)), "--snapshot", str(tmp_path / "nowhere" / "a.txt")]) == 73
    assert complaint(capsys).endswith("a.txt: no such file or directory")


def test_without_a_terminal_nothing_is_drawn(log: Callable[..., Path]) -> None:
    path = str(log(0.02))
    code = (
        "import sys; from verl_tui.cli import main; code = main(sys.argv[1:]);"
        "sys.exit('textual was imported' if 'textual' in sys.modules else code)"
    )
    for argv in ([path], ["demo"]):
        command = [sys.executable, "-c", code, *argv]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 3
        assert done.stderr.startswith("verl-tui: this is not a terminal")
        assert "verl-tui check PATH" in done.stderr
        assert "--snapshot" in done.stderr


def test_a_dumb_terminal_is_none(
    log: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert main([str(log(0.02))]) == 3
    assert "TERM=dumb" in complaint(capsys)


def test_interrupting_exits_130(
    log: Callable[..., Path], watched: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("verl_tui.tui.watch", interrupted)
    assert main([str(log(0.02))]) == 130


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a demo begin with few steps: two hundred take longer than all else about it."""
    prepare = Simulation.prepare
    monkeypatch.setattr(Simulation, "prepare", lambda simulation: prepare(simulation, 5))


def test_the_demo_is_watched_while_it_is_written_and_then_goes(watched: Watch, brief: None) -> None:
    assert main(["demo", "--pace", "0.001"]) == 0
    ((specs, _, _),) = watched
    assert len(specs) == 1
    assert specs[0].endswith("/run_*")
    assert not os.path.exists(os.path.dirname(specs[0]))  # noqa: PTH110, PTH120 - the pattern is no path


def test_a_demo_in_a_directory_of_ones_own_stays(
    watched: Watch, brief: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "demo[1]"
    assert main(["demo", "--dir", str(home)]) == 0
    assert capsys.readouterr().out == f"the simulated runs are in {home}\n"
    assert len(list(home.glob("run_*"))) == 3
    # The pattern finds the runs although the directory's name looks like a pattern itself.
    assert main(["check", watched[0][0][0], "--json"]) in (0, 1, 2)
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 3
    assert main(["demo", "--dir", str(home)]) == 73
    assert "already holds run_" in capsys.readouterr().err


def test_a_headless_demo_writes_until_it_is_over(
    brief: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("verl_tui.demo.Simulation.run", lambda self, stop, pace_s: self.advance())
    monkeypatch.setattr("signal.signal", lambda *_: None)
    assert main(["demo", "--headless", "--dir", str(tmp_path / "demo")]) == 0
    assert "verl-tui " in capsys.readouterr().out


# -- check -----------------------------------------------------------------------------------------


def test_check_exits_with_the_runs_health(log: Callable[..., Path]) -> None:
    assert main(["check", str(log(*[0.02] * 30))]) == 0
    assert main(["check", str(log(*[0.15] * 30))]) == 1
    assert main(["check", str(log(*[0.3] * 30))]) == 2


def test_check_writes_json(log: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--json", str(log(0.02, 0.021))]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["version"] == 1
    assert found["runs"][0]["indicators"]["policy_kl"]["value"] == 0.021


def test_check_of_a_path_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "/nonexistent"]) == 3
    assert complaint(capsys) == "/nonexistent: no such file or directory"


def test_check_json_of_nothing_is_still_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "/nonexistent", "--json"]) == 3
    assert json.loads(capsys.readouterr().out) == {"version": 1, "runs": [], "passed_over": []}


def test_check_of_an_empty_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["check", str(tmp_path / "empty")]) == 3
    assert "no log in this directory yet" in complaint(capsys)


@pytest.mark.parametrize(("content", "said"), [(b"\x7fELF\0\1\2\0" * 50, "binary"), (b"", "empty")])
def test_check_of_what_is_no_log(
    tmp_path: Path, content: bytes, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(content)
    assert main(["check", str(path)]) == 3
    assert said in complaint(capsys)


def test_check_of_a_log_without_a_readable_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("{broken\n{broken\n", encoding="utf-8")
    assert main(["check", str(path)]) == 3
    captured = capsys.readouterr()
    assert captured.err == "verl-tui: nothing readable so far in a\n"
    assert f"{path}:1: not JSON" in captured.out


@pytest.mark.parametrize("closed", ["file", "directory", "parent"])
def test_check_without_permission(
    closed: str, log: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    file = log(0.02)
    sealed = file if closed == "file" else file.parent
    path = file.parent if closed == "directory" else file
    rights = sealed.stat().st_mode
    sealed.chmod(0)
    with ordinary_rights():
        assert main(["check", str(path)]) == 3
    sealed.chmod(rights)
    assert complaint(capsys) == f"{path}: permission denied"


def test_check_goes_on_where_some_paths_are_fine(
    log: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "/nonexistent", str(log(0.02))]) == 0
    captured = capsys.readouterr()
    assert captured.err == "verl-tui: /nonexistent: no such file or directory\n"
    assert "step 1" in captured.out


def test_a_path_cannot_play_with_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "/no\x1b[2J\nsuch\x07"]) == 3
    assert "\x1b" not in complaint(capsys)


def test_piped_text_has_no_escape_sequences(log: Callable[..., Path]) -> None:
    environment = {**os.environ, "FORCE_COLOR": "1", "CLICOLOR_FORCE": "1", "TTY_COMPATIBLE": "1"}
    done = run("check", str(log(*[0.3] * 30)), env=environment)
    assert done.returncode == 2
    assert "critical circuit-breaker-kl" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


def test_output_that_cannot_be_encoded_is_no_error(log: Callable[..., Path]) -> None:
    path = log(*[0.3] * 30, name="训练")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    assert run("check", str(path), env=environment).returncode == 2
    done = run("check", str(path.parent), "--json", env=environment)
    assert done.returncode == 2
    assert json.loads(done.stdout)["runs"][0]["name"] == "训练"


def test_a_reader_that_leaves_early_changes_nothing(log: Callable[..., Path]) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as gone:
        for argv, code in ((["check", str(log(*[0.3] * 30))], 2), (["guide"], 141)):
            command = [sys.executable, "-m", "verl_tui", *argv]
            done = subprocess.run(
                command, stdout=gone, stderr=subprocess.PIPE, text=True, check=False
            )
            assert (done.returncode, done.stderr) == (code, "")


# -- export, guide, config -------------------------------------------------------------------------


def test_export_to_standard_output_and_to_a_file(
    log: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(log(0.02, 0.021))
    assert main(["export", "csv", path]) == 0
    text = capsys.readouterr().out
    assert text == "step,rollout/reward_mean,rollout/kl_div\n1,2.51,0.02\n2,2.52,0.021\n"
    assert main(["export", "csv", path, "-o", str(tmp_path / "out.csv")]) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"wrote {tmp_path / 'out.csv'}\n")
    assert (tmp_path / "out.csv").read_text(encoding="utf-8") == text


def test_export_of_several_runs(
    log: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log(0.02, name="a")
    log(0.03, name="b")
    assert main(["export", "csv", str(tmp_path / "logs")]) == 64
    assert complaint(capsys) == "2 runs (a, b) cannot go into one file: name a directory with -o"
    assert main(["export", "csv", str(tmp_path / "logs"), "-o", str(tmp_path / "out")]) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.csv", "b.csv"]


def test_export_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "csv", str(tmp_path / "nowhere"), "-o", str(tmp_path / "out.csv")]) == 3
    assert "no numbers to export" in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()


def test_export_where_nothing_can_be_written(
    log: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["export", "csv", str(log(0.02)), "-o", str(tmp_path / "nowhere" / "out.csv")]) == 73
    )
    assert "no such file or directory" in complaint(capsys)


def test_the_guide_is_alerts_and_a_dashboard_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text("[guide.rules.kl-high]\nthreshold = 0.345\n", encoding="utf-8")
    assert main(["guide", "--format", "prometheus", "--step", "10", "--config", str(mine)]) == 0
    text = capsys.readouterr().out
    assert "alert: VerlKlHigh" in text
    assert "[125s]) > 0.345" in text
    assert main(["guide", "--format", "grafana"]) == 0
    assert json.loads(capsys.readouterr().out)["panels"]


def test_the_guide_names_rules_thresholds_and_sources(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(
        '[guide]\nsilence = ["gpu-idle"]\n[guide.rules.kl-high]\nthreshold = 0.3\n',
        encoding="utf-8",
    )
    assert main(["guide", "--config", str(mine)]) == 0
    text = capsys.readouterr().out
    assert "\nkl-high (warning)\n    policy_kl: above, threshold 0.3, over " in text
    assert "source: verl tutorials' indicator guide, changed in your settings" in text
    assert (
        "\ngpu-idle (warning, silenced)\n    gpu_utilization: below, threshold 50%, over " in text
    )


def test_config_prints_where_and_what(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"# {tmp_path / 'config.toml'}\n")
    assert "\n#refresh = 0.5\n" in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("refrsh = 1", "unknown key `refrsh`; did you mean `refresh`?"),
        (
            "[guide.rules.kl-high]\nthreshold = 'x'",
            "rule `kl-high`, field `threshold`: must be a number, not 'x'",
        ),
        (
            "[guide]\nsilence = ['nonsense']",
            "health settings, field `silence`: there is no rule `nonsense`",
        ),
    ],
)
@pytest.mark.parametrize("command", ["check", "watch"])
def test_a_broken_configuration_stops_every_command(
    command: str,
    text: str,
    said: str,
    tmp_path: Path,
    log: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(text, encoding="utf-8")
    assert main([command, str(log(0.02)), "--config", str(mine)]) == 64
    assert complaint(capsys) == f"{mine}: {said}"


def test_the_module_is_the_command() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"verl-tui {verl_tui.__version__}\n")


def test_threads_that_still_read_do_not_hold_up_the_end() -> None:
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
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (7, "said\n")


def test_a_command_imports_no_other() -> None:
    code = (
        "import sys; from verl_tui.cli import main; main(['get', 'runs', '/nonexistent']);"
        "main(['.']);"  # without a terminal
        "print(*(name for name in sys.modules if name.startswith('verl_tui.commands.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    imported = {name.removeprefix("verl_tui.commands.") for name in done.stdout.split()}
    assert {"get", "watch", "gets.runs"} <= imported
    assert not imported & {"check", "export", "guard", "notify", "replay"}


def test_without_an_address_nothing_that_sends_is_imported() -> None:
    code = (
        "import sys; from verl_tui.commands.notifying import notifier_for;"
        "from verl_tui.config import Config;"
        "print(notifier_for(Config(), 'watch'), sorted({'http.client', 'ssl'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "None []\n"


def test_what_is_wrong_with_a_command_is_told_by_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--snapshot", "a.svg"]) == 64
    assert "has it" in complaint(capsys)
