"""Real logs of strangers, held against regular expressions that share nothing with the readers.

Without them these tests skip.
"""

from __future__ import annotations

import json
import math
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import pytest
from log_reading import LOGS, MADE, NOW, own_keys, read_run, read_runs, values

from verl_tui.health.guide_settings import load_guide
from verl_tui.health.judge import Judge
from verl_tui.ledger import in_words, ledger
from verl_tui.runs.views.state import State, state

if TYPE_CHECKING:
    from verl_tui.runs.run import Run

pytestmark = pytest.mark.skipif(
    not LOGS.is_dir(), reason=f"no real logs at {LOGS}: set VERL_TUI_LOGS"
)

AGENT = "HappynessI__verl-for-AgentGym/Verl-Data/outputs"
QWEN = "diqiuzhuanzhuan__verldata/run_logs/qwen2-7b_math.log"
WEBSHOP = f"{AGENT}/webshop_grpo_test/logs/test_20251213_235103.log"
SFT = f"{AGENT}/textcraft_sft/logs/train_20251217_085640.log"
LOGIC = (
    "zhiyuanhubj__logic-rl-formula/wandb/run-20250302_115218-wntzruuo/files/output.log"
)
BORIS = "boris-dotv__search-r1.v/logs"
MAZE = "KotoHanon__VERL-Maze/verl_demo.log"
OURS = "made-with-verl-0.9.1/run_7/train.log"
FILES = (
    "HanlinDu__verl/verl_examples__gsm8k.jsonl",
    "made-with-verl-0.9.1/run_7/proj/exp.jsonl",
)


@cache
def real(name: str) -> Run:
    """Return the run behind a real log, read once for all tests: none changes it."""
    return read_run(LOGS / name)


def console_truth(path: Path) -> dict[str, dict[int, float]]:
    """Read a console log in another way: from its decoded text, key by key from the right."""
    truth: dict[str, dict[int, float]] = {}
    text = re.sub(r"\x1b\[[0-9;]*m", "", path.read_bytes().decode("utf-8", "replace"))
    for line in re.split(r"[\r\n]", text):
        found = re.search(
            r"(?:^|[\s\]])step:(\d+) - (?=\S+?:(?:np\.|[-\d.]))(.*)", line
        )
        if found is None:
            continue
        for key, _, number in re.findall(
            r"(\S.*?):((?:np\.\w+\()?)([-+.\w]+)\)?(?: - |/|$)", found[2]
        ):
            truth.setdefault(key, {})[int(found[1])] = float(number)
    return truth


def same(a: dict[int, float], b: dict[int, float]) -> bool:
    return a.keys() == b.keys() and all(
        a[s] == b[s] or (math.isnan(a[s]) and math.isnan(b[s])) for s in a
    )


@pytest.mark.parametrize(
    ("name", "steps", "keys"),
    [
        (QWEN, range(211), 57),
        (WEBSHOP, range(3), 75),
        (SFT, range(1, 201), 4),
        (LOGIC, range(2), 49),
        (OURS, range(1, 41), 8),
    ],
)
def test_console_says_what_a_regular_expression_says(name, steps, keys):
    truth = console_truth(LOGS / name)
    run = real(name)
    assert len(truth) == keys
    assert own_keys(run) == set(truth)
    assert {step for key in truth for step in truth[key]} == set(steps)
    for key in truth:
        assert same(values(run, key), truth[key]), key


@pytest.mark.parametrize("name", FILES)
def test_file_logger_says_what_json_says(name):
    truth: dict[str, dict[int, float]] = {}
    for line in (LOGS / name).read_text().splitlines():
        record = json.loads(line)
        for key, value in record["data"].items():
            if not isinstance(value, str | list):
                truth.setdefault(key, {})[record["step"]] = (
                    math.nan if value is None else float(value)
                )
    run = real(name)
    assert list(run.keys) == list(truth)
    for key, expected in truth.items():
        assert same(values(run, key), expected), key
    assert run.unreadable == 0


def test_console_and_file_logger_of_one_run_agree():
    """Console and file say the same, but for NaN, which the file writes as null: both are nan
    here.
    """
    console, file = real(OURS), real(FILES[1])
    for key in file.keys:
        assert same(values(console, key), values(file, key)), key
    assert math.isnan(values(file, "actor/pg_loss")[33])


def test_the_directory_of_that_run_is_one_run():
    run = real("made-with-verl-0.9.1/run_7")
    assert run.name == "run_7"
    assert {s.status.format for s in run.sources.values()} == {
        "console",
        "verl file logger",
        "tensorboard events",
        "checkpoints",
    }
    assert run.restarts == []


@pytest.mark.parametrize(
    ("name", "expected", "step", "total", "words"),
    [
        (QWEN, State.FINISHED, 210, 210, "Final validation metrics"),
        (SFT, State.FINISHED, 200, 200, "Final validation metrics"),
        (WEBSHOP, State.CRASHED, 2, 12, "ChunkedEncodingError"),
        (f"{BORIS}/10665_ppo_train.log", State.CRASHED, 1, 1005, "CUDA out of memory"),
        (f"{BORIS}/10566_train.log", State.CRASHED, 50, 1005, "ActorDiedError"),
        (MAZE, State.CRASHED, None, 30, "NotImplementedError"),
    ],
)
def test_states_are_what_people_say_of_these_runs(name, expected, step, total, words):
    run = real(name)
    written = (LOGS / name).stat().st_mtime
    assert state(run, written + 30) is expected
    assert (run.step, run.total_steps) == (step, total)
    assert run.outcome is not None
    assert words in run.outcome.text


def test_a_log_that_breaks_off_is_not_called_crashed():
    run = real(LOGIC)
    assert state(run, (LOGS / LOGIC).stat().st_mtime + 5 * 3600) is State.ENDED


def test_settings_are_those_printed_on_the_console():
    text = (LOGS / WEBSHOP).read_text(errors="replace")
    run = real(WEBSHOP)
    for name in (
        "data.max_response_length",
        "data.train_batch_size",
        "trainer.test_freq",
    ):
        printed = re.search(rf"'{name.split('.')[1]}': (\d+)[,}}]", text)
        assert printed is not None
        assert run.settings[name] == int(printed[1])
    assert run.config.origins["trainer.test_freq"] == "console"


def test_samples_on_the_console():
    text = re.sub(r"\x1b\[[0-9;]*m", "", (LOGS / QWEN).read_text(errors="replace"))
    scores = [float(s) for s in re.findall(r"\) \[score\] ([-\d.]+)", text)]
    run = real(QWEN)
    found = [
        sample.score
        for place in run.samples.places
        for sample in run.samples.kept(place)
    ]
    assert sorted(found) == sorted(scores)


EARLY = (
    "zhiyuanhubj__logic-rl-formula/wandb/run-20250302_114336-m950nfkl/files/output.log"
)
"""Its first step comes after 673 kB of printed samples."""
OMNI = "JOY-SWang__R1-AQA-Omni/wandb/run-20250606_130916-td8fx8t1"
RUNS = {
    (QWEN,): "qwen2_7b_function_rm",
    (LOGIC,): "zhiyuanhubj__logic-rl-formula (wntzruuo)",
    (EARLY,): "zhiyuanhubj__logic-rl-formula (m950nfkl)",
    (OURS, FILES[1]): "made-with-verl-0.9.1",
    (FILES[0],): "HanlinDu__verl",
    (f"{OMNI}/files/output.log", f"{OMNI}/run-td8fx8t1.wandb"): "AQA-GRPO-omni",
}


@cache
def all_runs() -> dict[str, Run]:
    """Return the runs of all logs that are read at once, but for the largest folder, whose runs have
    a directory each.
    """
    folders = {name.partition("/")[0] for names in RUNS for name in names}
    return read_runs(*(LOGS / folder for folder in sorted(folders)))


def test_all_logs_at_once_give_every_run_once():
    runs = all_runs()
    files = [
        path
        for run in runs.values()
        for path, s in run.sources.items()
        if s.status.rank
    ]
    assert len(files) == len(set(files))
    for names, called in RUNS.items():
        paths = {str(LOGS / name) for name in names}
        if all(Path(path).exists() for path in paths):
            found = [name for name, run in runs.items() if paths & run.sources.keys()]
            assert found == [called]
            assert paths <= runs[called].sources.keys()


@pytest.mark.parametrize(
    "path",
    [None, *sorted(one for one in MADE.glob("*") if one.is_dir())[1::4]],
    ids=lambda path: path.name if path else "all logs",
)
def test_hours_add_up_to_the_time_of_all_devices(path):
    for run in (read_runs(path) if path else all_runs()).values():
        check_hours(run)


def check_hours(run: Run) -> None:
    guide, now = load_guide(), (run.modified or NOW) + 7200
    found = ledger(run, Judge(guide, run).verdict(now), guide, now)
    if found is None:
        return
    hours = {one["id"]: one["hours"] for one in found["lines"]}
    total, devices = sum(hours.values()), found["devices"] or 1
    assert total == pytest.approx(found["wall_hours"] * devices, rel=0.01)
    assert sum(one["share"] for one in found["lines"]) == pytest.approx(1.0)
    if not found["times_stated"]:
        assert "estimated" in in_words(found)[0]
        return
    # The first step, of which a log may state only when it was done, and those that are not
    # dated count as usual ones.
    states = [one for one in run.sources.values() if one.began is not None]
    began, ended = min(it.began for it in states), max(it.ended for it in states)
    taught = next(one for one in found["lines"] if one["id"] == "taught")
    series = run.series(taught["figures"][0])
    gaps = [late - soon for soon, late in pairwise(series.times)]
    untimed = median([gap for gap in gaps if gap >= 0] or [0.0])
    before = min(one.first for one in states) < series.steps[0]
    body = 3600 * (total - sum(hours[id] for id in ("start-up", "end", "hang")))
    count = sum(map(math.isnan, series.times)) + (not before)
    wall = ended - began + untimed * count
    assert body / devices == pytest.approx(wall, rel=0.01, abs=1.5)
