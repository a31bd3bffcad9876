"""An error of our own costs the run or the part that it happened in, is said once, and leaves the
rest of an export going; where nothing is left, the command says what a report of it needs.
"""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest
from jsonl import write_jsonl

from verl_tui.cli import main
from verl_tui.commands.shared import Options
from verl_tui.commands.signals import write_runs
from verl_tui.config import Config
from verl_tui.exporters.tensorboard import LogDirectories, RunLogDirectory
from verl_tui.monitor import Monitor, load

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.runs.run import Run

NOW = 1_800_000_000.0


@pytest.fixture
def logs(tmp_path, monkeypatch):
    """Two runs."""
    monkeypatch.setenv("VERL_TUI_STATE", "")
    for name in ("bad", "good"):
        path = tmp_path / "logs" / name / "log.jsonl"
        path.parent.mkdir(parents=True)
        form = '{{"step": {}, "data": {{"critic/score/mean": 0.5}}}}\n'
        path.write_text("".join(map(form.format, range(1, 4))))
    return tmp_path / "logs"


def failing_for_bad(original: Callable[..., object]) -> Callable[..., object]:
    """Return a function that fails where it comes to the run `bad`."""

    def fails(*given: object) -> object:
        if any(getattr(one, "name", "") == "bad" for one in given):
            raise KeyError("own")
        return original(*given)

    return fails


def test_a_table_that_fails_leaves_the_others_written(logs, monkeypatch, capsys):
    from verl_tui.exporters import csv

    monkeypatch.setattr(csv, "write_csv", failing_for_bad(csv.write_csv))
    out = logs.parent / "tables"
    assert main(["export", "csv", str(logs), "-o", str(out)]) == 70
    assert [path.name for path in out.iterdir()] == ["good.csv"]
    wrote, problem = capsys.readouterr().err.splitlines()
    assert wrote == f"wrote {out / 'good.csv'}"
    assert problem.startswith(f"verl-tui: {out / 'bad.csv'}: not written: KeyError in ")


def test_event_files_that_fail_are_given_up_and_said_once(logs, monkeypatch):
    runs: list[Run] = list(load([str(logs)], Config(), NOW).runs.values())
    fails = failing_for_bad(RunLogDirectory.write)
    monkeypatch.setattr(RunLogDirectory, "write", fails)
    board = logs.parent / "board"
    directories = LogDirectories(board)
    failed, written = sorted(directories.write(runs, NOW))
    assert failed.startswith(f"{board}/bad: cannot be exported any further: Key")
    assert written.startswith(f"{board}/good: 3 points; the log states no time for 3 ")
    assert directories.failed
    assert list(directories.write(runs, NOW + 30)) == [], "and not tried again"


def test_an_export_that_follows_outlives_an_error_of_its_own(logs, monkeypatch, capsys):
    works = [True, False, False, True]

    def write(_: Monitor) -> None:
        if not works.pop(0):
            raise ZeroDivisionError

    asked = Options(paths=[str(logs)], config=None, interval=1.0)
    monkeypatch.setattr("verl_tui.commands.signals.at_end", lambda _: None)
    monkeypatch.setattr(
        "verl_tui.exporters.following.follow",
        lambda _, config, **__: [Monitor(config) for _ in range(4)],
    )
    assert write_runs(asked, write, follow=True) == 0
    empty, once, again = capsys.readouterr().err.splitlines()
    assert empty == "verl-tui: nothing to export so far"
    assert once.startswith("verl-tui: nothing was exported: ZeroDivisionError in ")
    assert once.endswith("; tried again at the next writing")
    assert again == "verl-tui: written again"


def test_a_report_goes_without_samples_that_cannot_be_shown(logs, monkeypatch):
    sample = {"prompt": "p", "response": "r", "score": 1.0, "step": 1}
    write_jsonl(logs / "bad" / "samples.jsonl", [sample])
    monkeypatch.setattr("verl_tui.report.reported_samples.shortened", lambda *_: 1 / 0)
    assert main(["report", str(logs), "-o", str(logs.parent / "r.md")]) == 0
    text = (logs.parent / "r.md").read_text()
    assert "samples cannot be shown: ZeroDivisionError in " in text


def test_a_bundle_goes_without_a_part_that_cannot_be_made(logs, monkeypatch, capsys):
    monkeypatch.setattr("verl_tui.bundle.contents.list_charts", lambda *_: 1 / 0)
    out = logs.parent / "run.zip"
    assert main(["bundle", str(logs / "bad"), "--yes", "-o", str(out)]) == 0
    with zipfile.ZipFile(out) as archive:
        assert "charts.txt" not in archive.namelist()
        assert "metrics.csv" in archive.namelist()
        assert "charts: ZeroDivisionError in " in archive.read("README.txt").decode()
    assert "verl-tui: charts: ZeroDivisionError in " in capsys.readouterr().err


@pytest.mark.parametrize("error", [KeyError("own"), OSError("neither full nor gone")])
def test_a_command_that_fails_says_what_a_report_needs(
    error, logs, monkeypatch, capsys
):
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("verl_tui.monitor.load", fails)
    with pytest.raises(type(error)):
        main(["check", str(logs)])
    monkeypatch.delenv("VERL_TUI_STRICT")
    assert main(["check", str(logs)]) == 70, "1 and 2 are verdicts"
    said = capsys.readouterr()
    assert said.out == ""
    own = f"verl-tui: an error of verl-tui's own: {type(error).__name__} in "
    assert said.err.startswith(own)
    assert "Traceback (most recent call last):" in said.err
