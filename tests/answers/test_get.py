"""`get`: each answer as a program gets it, equal to those of `check` and `export csv`, and one
clear sentence where there is none.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from typing import TYPE_CHECKING, Any

import pytest
from jsonl import write_jsonl
from log_reading import LOGS, read_run

from verl_tui.cli import build_parser
from verl_tui.commands.get import COMMANDS
from verl_tui.exporters.csv import write_csv
from verl_tui.plain_data import value_fields

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def get(asked):
    """Return a function that asks for an answer as JSON."""

    def ask(*words: str | Path) -> dict[str, Any]:
        line = asked("get", *words, "--json", code=0).out
        assert line.count("\n") == 1
        answer: dict[str, Any] = json.loads(line)
        return answer

    return ask


@pytest.fixture
def run(tmp_path):
    """Return the directory of a run whose KL rises, with samples and a value that is no number."""
    path = tmp_path / "logs" / "run_7" / "verl_logs.jsonl"
    lines: list[dict[str, Any]] = []
    for step in range(1, 41):
        kl = 0.02 if step < 30 else 0.4
        lines.append(
            {"scope": "rollout", "step": step, "reward_mean": step / 4, "kl_div": kl}
        )
        for score in (0.5, -1.0, 2.0):
            text = {"prompt": "why\x1b[31m?", "response": "y" * 600, "reward": score}
            lines.append({"scope": "sample", "step": step, **text})
    lines.append({"scope": "ppo", "step": 40, "policy_loss": float("nan")})
    return write_jsonl(path, lines).parent


NAMED = "version run run_id"
READ = f"{NAMED} read bytes_read"
FIELDS = {
    "state": f"{READ} state step total_steps steps_estimated progress remaining_s last_record_age_s"
    " last_record_by verdict finding findings phase",
    "findings": f"{READ} total left_out not_judged findings",
    "metrics": f"{READ} steps_estimated total left_out metrics",
    "metrics --metric reward": f"{READ} steps_estimated key indicator total left_out points",
    "samples": f"{READ} order step validation total left_out samples",
    "log": f"{NAMED} path size more_before more_after gave_up lines",
}


@pytest.mark.parametrize("words", FIELDS)
def test_the_fields_of_each_answer_are_in_its_help(get, run, words):
    name, *more = words.split()
    help = build_parser().commands["get"].commands[name].format_help()
    assert "exit codes:" in help
    assert "for example:" in help
    found = get(name, run, *more)
    assert list(found) == FIELDS[words].split()
    for field in found:
        assert re.search(rf"\b{field}\b", help), field


def test_the_points_and_the_list_of_metrics(get, run):
    points = get("metrics", run, "--metric", "policy_kl", "--last", "2")["points"]
    assert points == [{"step": at, "value": 0.4, "time": None} for at in (39, 40)]
    fields = "key indicator step value count min max"
    assert list(get("metrics", run)["metrics"][0]) == fields.split()


def test_a_value_that_is_no_number_is_null_and_said(get, run):
    (point,) = get("metrics", run, "--metric", "ppo/policy_loss")["points"]
    assert (point["value"], point["finite"]) == (None, False)
    assert value_fields(float("-inf")) == {"value": None, "finite": False}


def test_points_around_a_step(get, run):
    metric = ("metrics", run, "--metric", "rollout/kl_div")
    found = get(*metric, "--around", "30", "--last", "4")
    assert [point["step"] for point in found["points"]] == [28, 29, 30, 31]
    assert (found["total"], found["left_out"]) == (40, 36)
    near = get(*metric, "--around", "900", "--last", "2")
    assert [point["step"] for point in near["points"]] == [39, 40]


def test_a_chart_in_text_rises_where_the_metric_does(asked, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    found = asked("get", "metrics", run, "--metric", "reward", "--plot", code=0)
    name, *rows = found.out.splitlines()
    assert name == "rollout/reward_mean"
    assert max(map(len, rows)) <= 60
    drawn = [re.search("[\u2801-\u28ff]", row) for row in rows]
    starts = [found.start() for found in drawn if found]
    assert len(starts) > 8
    assert starts == sorted(starts, reverse=True)
    monkeypatch.setenv("LC_ALL", "C")
    out = asked("get", "metrics", run, "--metric", "ppo/policy_loss", "--plot").out
    assert out.isascii()
    assert "not drawn: 1 value" in out


def test_the_worst_and_the_best_samples_of_a_step(get, asked, run):
    worst = get("samples", run, "--worst", "2")
    scores = [(one["step"], one["score"]) for one in worst["samples"]]
    assert scores == [(40, -1.0), (40, 0.5)]
    assert (worst["total"], worst["left_out"]) == (3, 1)
    text = asked("get", "samples", run, "--worst", "2").out
    assert text.endswith("\n(1 more sample of step 40)\n")
    best = get("samples", run, "--best", "1", "--around", "7")
    assert [(one["step"], one["score"]) for one in best["samples"]] == [(7, 2.0)]


def test_texts_are_cut_and_their_lengths_said(get, run):
    (cut,) = get("samples", run, "--last", "1")["samples"]
    assert (len(cut["response"]), cut["response_length"]) == (500, 600)
    (full,) = get("samples", run, "--last", "1", "--full")["samples"]
    assert len(full["response"]) == 600


def test_no_escape_sequence_reaches_the_terminal(asked, run):
    for words in (["samples"], ["log"], ["log", "--grep", "why"]):
        out = asked("get", words[0], run, *words[1:], code=0).out
        assert "why" in out
        assert "\x1b" not in out


def test_samples_in_dumps_are_those_of_the_step(get, run):
    dumps = run / "rollouts"
    dumps.mkdir()
    form = '{{"input": "q", "output": "a{}", "score": {}, "step": 50}}\n'
    rows = [form.format(one, one) for one in ("NaN", "Infinity", "-Infinity")]
    rows += [form.format(at, at % 5) for at in range(20)]
    (dumps / "50.jsonl").write_text("".join(rows) + "{broken\n", encoding="utf-8")
    found = get("samples", run, "--best", "3")
    assert [one["response"] for one in found["samples"]] == ["a4", "a9", "a14"]
    (worst,) = get("samples", run, "--worst", "1")["samples"]
    assert worst["response"] == "a0"
    last = get("samples", run, "--last", "2")["samples"]
    assert last[0]["response"] == "a19"
    assert last[1]["unreadable"] is True


def test_the_newest_samples_after_a_restart_are_those_of_its_steps(get, run):
    """Those of steps that the run has not reached again are old."""
    lines: list[dict[str, Any]] = []
    for step in range(1, 6):
        lines.append(
            {"scope": "rollout", "step": step, "reward_mean": 0.5, "kl_div": 0.02}
        )
        text = {"prompt": "why", "response": f"again {step}", "reward": 0.5}
        lines.append({"scope": "sample", "step": step, **text})
    with (run / "verl_logs.jsonl").open("a", encoding="utf-8") as log:
        log.writelines(json.dumps(line) + "\n" for line in lines)
    newest = get("samples", run, "--last", "1")
    assert newest["step"] == 5
    assert newest["samples"][0]["response"] == "again 5"
    assert get("samples", run, "--around", "39", "--last", "1")["step"] == 39


@pytest.fixture
def crashed(tmp_path):
    """Return a console of verl that ends with an error in the middle."""
    steps = "".join(
        f"step:{step} - actor/ppo_kl:0.1 - actor/pg_loss:0.2 - critic/rewards/mean:0.3 - perf/x:1\n"
        f"noise {step}\n"
        for step in range(1, 60)
    )
    error = (
        "Traceback (most recent call last):\n"
        '  File "main.py", line 1, in <module>\n'
        "RuntimeError: CUDA error: out of luck\n"
    )
    after = "".join(f"clean-up {at}\n" for at in range(30))
    path = tmp_path / "train.log"
    path.write_text(steps + error + after, encoding="utf-8")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return path


def test_the_log_of_a_crashed_run_opens_at_its_error(get, crashed):
    found = get("log", crashed, "--error", "--last", "6")
    (marked,) = [line for line in found["lines"] if line.get("mark")]
    assert marked["text"] == "RuntimeError: CUDA error: out of luck"
    assert len(found["lines"]) == 6
    assert (found["more_before"], found["more_after"]) == (True, True)
    assert found["lines"] == get("log", crashed)["lines"][7:13]


def test_an_expression_that_takes_too_long_is_given_up(get, tmp_path):
    path = tmp_path / "train.log"
    step = "step:1 - actor/ppo_kl:0.1 - actor/pg_loss:0.2 - critic/rewards/mean:0.3 - perf/x:1\n"
    path.write_text(step + "a" * 16_000 + "\n", encoding="utf-8")
    found = get("log", path, "--grep", ".*a.*a.*a.*b")
    assert found["gave_up"] is True


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["state", "logs"], 64, "2 runs: run_7, run_8; name one with --run"),
        (["state", "logs", "--run", "run"], 64, "run may be run_7, run_8: name one"),
        (["state", "logs", "--run", "none"], 64, "none of the runs: run_7, run_8"),
        (["state", "nothing"], 3, "nothing: no such file or directory"),
        (["metrics", "logs/run_7", "--metric", "rewrd"], 64, "no metric rewrd; alike: reward"),
        (["metrics", "logs/run_7", "--around", "3"], 64, "--around goes with --metric"),
        (["metrics", "logs/run_7", "--metric", "validation"], 3, "no value of validation so far"),
        (["metrics", "logs/run_7", "--metric", "critic/score/max"], 3, "no value of critic/score/max so far"),
        (["metrics", "logs/run_7", "--metric", "val-core/gsm8k/acc"], 3, "no value of val-core/gsm8k/acc so far"),
        (["metrics", "logs/run_7", "--metric", "rollout/reward_mena"], 64, "no metric rollout/reward_mena; alike"),
        (["metrics", "logs/run_7", "--metric", "reward", "--metric", "rewrd"], 64, "no metric rewrd"),
        (["metrics", "logs/run_7", "--metric", "x", "--filter", "y"], 64, "not allowed with argument --metric"),
        (["samples", "logs/run_7", "--validation"], 3, "run_7 has no validation samples"),
        (["log", "logs/run_7", "--around", "999"], 3, "has reached step 40 so far"),
        (["log", "logs/run_7", "--error"], 64, "no error has ended run_7"),
        (["log", "done.log", "--error"], 64, "no error has ended done"),
        (["log", "logs/run_7", "--grep", "("], 64, "missing )"),
        (["findings"], 64, "name a log"),
        ([], 64, f"name a command: {', '.join(COMMANDS)}"),
    ],
)  # fmt: skip
def test_one_sentence_where_there_is_no_answer(
    asked, run, monkeypatch, words, code, sentence
):
    other = run.parent / "run_8"
    other.mkdir()
    line = '{"scope": "ppo", "step": 1, "policy_loss": 1}\n'
    (other / "verl_logs.jsonl").write_text(line)
    monkeypatch.chdir(run.parent.parent)
    done = (
        "step:1 - critic/score/mean:0.5\nFinal validation metrics: {'val/acc': 0.5}\n"
    )
    (run.parent.parent / "done.log").write_text(done)
    _, out, err = asked("get", *words, code=code)
    assert out == ""
    assert sentence in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", [["metrics", "--metric", "policy_kl"], ["samples"]])
def test_what_is_passed_over_is_said_of_a_long_log_too(asked, run, words, monkeypatch):
    long = 100_000
    monkeypatch.setattr("verl_tui.answers.run_reading.LONG", long)
    log = run / "verl_logs.jsonl"
    text = log.read_text()
    log.write_text(text * (long // len(text) + 1), encoding="utf-8")
    (run / "odd.log").write_text("nothing that anybody knows\n" * 50, encoding="utf-8")
    assert "odd.log" in asked("get", words[0], run, *words[1:], code=0).err


REAL = (
    "KotoHanon__VERL-Maze/verl_demo.log",
    "HanlinDu__verl/verl_examples__gsm8k.jsonl",
    "made-with-verl-0.9.1/run_7",
    "hykun1989__360-LLaMA-Factory-grpo/trainer_log.jsonl",
)
needs_logs = pytest.mark.skipif(not LOGS.is_dir(), reason=f"{LOGS} is not here")


@needs_logs
@pytest.mark.parametrize("name", REAL)
def test_real_logs_have_the_points_of_the_exported_table(get, name):
    path = LOGS / name
    run = read_run(path)
    text = io.StringIO()
    write_csv(run, text)
    rows = list(csv.DictReader(io.StringIO(text.getvalue())))
    for key in [key for key in run.keys if key != "step"][::7]:
        table = [(int(row["step"]), float(row[key])) for row in rows if row[key]]
        exported = [point for point in table if point[0] <= (run.end or point[0])]
        found = get("metrics", path, "--metric", key, "--last", "1000000")["points"]
        assert [(point["step"], point["value"]) for point in found] == [
            (step, value if math.isfinite(value) else None) for step, value in exported
        ]
