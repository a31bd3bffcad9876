"""Answers from the end of a long log: the same as from all of it, with few bytes read."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from file_writing import write_file
from hypothesis import example, given
from hypothesis import strategies as st

from verl_tui.answers import run_reading
from verl_tui.answers.metrics import points_of
from verl_tui.answers.samples import samples_of
from verl_tui.answers.state import state_of
from verl_tui.config import Config
from verl_tui.given_files import NothingError, UsageError
from verl_tui.health.guide_settings import load_guide

NOW = 1_800_000_000.0
GUIDE = load_guide(Config().guide)


def file_logger(steps: list[int], note: str = "") -> str:
    """Return a file logger's lines; the values tell one segment from another."""
    lines = []
    for at, step in enumerate(steps):
        data = {"actor/ppo_kl": at / 7, "note": note}
        if step % 5 == 0:
            data["val/acc"] = at / 3
        lines.append(json.dumps({"step": step, "data": data}) + "\n")
    return "".join(lines)


def tutorial(steps: list[int], ranks: int = 1) -> str:
    """Return the tutorials' JSONL, with several rewards and samples a step, which are averaged."""
    lines: list[dict[str, Any]] = []
    for at, step in enumerate(steps):
        lines += [{"scope": "system", "gpu_util": at}]
        for one in range(3):
            lines.append({"scope": "reward", "step": step, "reward": at + one})
            texts = {"prompt": f"p{at}", "response": f"r{at} {one}", "reward": at + one}
            lines.append({"scope": "sample", "step": step, **texts})
        for rank in range(ranks):
            own = {"rank": rank} if ranks > 1 else {}
            lines.append({"scope": "ppo", "step": step, "kl_div": at + rank, **own})
    return "".join(json.dumps(line) + "\n" for line in lines)


def console(steps: list[int]) -> str:
    """Return a console of verl: settings, noise, step lines."""
    lines = ["(TaskRunner pid=1) Total training steps: 5000\n"]
    for at, step in enumerate(steps):
        lines.append("(TaskRunner pid=1) INFO nothing to see here\n" * 3)
        lines.append(
            f"(TaskRunner pid=1) step:{step} - actor/ppo_kl:{at / 7} - actor/pg_loss:{at} - "
            f"critic/rewards/mean:{at / 3} - perf/throughput:{at}.5\n"
        )
    return "".join(lines)


def from_end(path: Path, answer: Any, first: int = 400) -> Any:
    read = run_reading.readings([str(path)], None, NOW, long=0, first=first)
    return next(filter(None, map(answer, read)))


def whole(path: Path, answer: Any) -> Any:
    return answer(run_reading.read_run([str(path)], None, NOW))


def same(found: dict[str, Any]) -> dict[str, Any]:
    """Return the part of an answer that does not tell how it was read."""
    return {name: found[name] for name in ("run", "key", "indicator", "points")}


@st.composite
def steps_of_a_run(draw: st.DrawFn) -> list[int]:
    """Return the steps of a log that may have gone back several times."""
    steps, at = [], draw(st.integers(0, 40))
    for _ in range(draw(st.integers(1, 3))):
        count = draw(st.integers(1, 40))
        steps += range(at + 1, at + 1 + count)
        at = draw(st.integers(max(0, at + count - 30), at + count))
    return steps


@given(
    steps=steps_of_a_run(),
    write=st.sampled_from([file_logger, tutorial, partial(tutorial, ranks=2), console]),
    count=st.integers(1, 25),
    around=st.none() | st.integers(0, 120),
    first=st.integers(1, 3000),
    at=st.integers(0, 1000),
)
@example(steps=[*range(1, 11)], write=file_logger, count=1, around=0, first=1, at=0)
@example(
    steps=[*range(1, 31), *range(21, 41)],
    write=file_logger,
    count=15,
    around=None,
    first=900,
    at=0,
)
def test_points_from_the_end_are_those_of_the_whole_log(
    steps, write, count, around, first, at
):
    """Two of the metrics are asked for, as each is read from the end anew."""
    with TemporaryDirectory() as directory:
        path = write_file(Path(directory) / "log.jsonl", write(steps))
        everything = run_reading.read_run([str(path)], None, NOW)
        run = everything.run
        keys = [key for key in run.keys if run.present(key)]
        for key in {keys[at % len(keys)], keys[(at + len(keys) // 2) % len(keys)]}:
            if write not in (file_logger, console) and key.startswith("system/"):
                continue  # its records state no step, see below
            answer = partial(points_of, metrics=[key], count=count, around=around)
            assert same(from_end(path, answer, first)) == same(answer(everything))


def test_few_bytes_are_read_for_the_last_points(tmp_path):
    path = tmp_path / "verl.jsonl"
    path.write_text(file_logger([*range(1, 20_001)], note="x" * 40), encoding="utf-8")
    found = from_end(
        path, partial(points_of, metrics=["policy_kl"], count=5), first=4096
    )
    assert [point["step"] for point in found["points"]] == [*range(19_996, 20_001)]
    assert (found["read"], found["total"], found["left_out"]) == ("end", None, None)
    assert found["bytes_read"] < path.stat().st_size / 10


def test_a_mistyped_metric_of_a_long_log_does_not_cost_all_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr(run_reading, "DEEP", 4096)
    path = write_file(tmp_path / "verl.jsonl", file_logger(list(range(1, 2000))))
    said = r"has no metric x in the last .* \(--whole reads all"
    with pytest.raises(UsageError, match=said):
        from_end(path, partial(points_of, metrics=["x"], count=1), first=1024)
    with pytest.raises(NothingError, match=r"has no samples in the last"):
        from_end(path, partial(samples_of, count=1), first=1024)


def test_a_console_that_states_no_steps_is_read_whole(tmp_path):
    path = tmp_path / "train.log"
    form = "{{'loss': {}, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'epoch': {}}}\n"
    lines = [form.format(at / 3, at / 100) for at in range(300)]
    path.write_text("".join(lines), encoding="utf-8")
    answer = partial(points_of, metrics=["loss"], count=2)
    found = from_end(path, answer)
    assert found["read"] == "whole"
    assert same(found) == same(whole(path, answer))


def test_the_state_from_the_end_has_the_length_from_the_beginning_and_no_verdict(
    tmp_path,
):
    path = write_file(tmp_path / "train.log", console(list(range(1, 2001))))

    def answer(reading: run_reading.Reading) -> Any:
        return state_of(reading._replace(guide=GUIDE, now=NOW))

    found = from_end(path, answer)
    all_of_it = whole(path, answer)
    assert (found["step"], found["total_steps"], found["progress"]) == (2000, 5000, 0.4)
    assert (found["verdict"], found["findings"], found["read"]) == (None, None, "end")
    for name in ("state", "step", "total_steps", "last_record_age_s", "last_record_by"):
        assert found[name] == all_of_it[name]
    assert found["bytes_read"] < path.stat().st_size / 2


@pytest.mark.parametrize("count", [1, 4, 30])
def test_the_last_samples_from_the_end_are_those_of_the_whole_log(tmp_path, count):
    path = write_file(tmp_path / "verl_logs.jsonl", tutorial(list(range(1, 301))))
    answer = partial(samples_of, count=count)
    found = from_end(path, answer, first=3000)
    assert found["samples"] == whole(path, answer)["samples"]
    assert found["read"] == "end"
