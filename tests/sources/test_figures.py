"""Figures of samples as rows: complete however the file was cut, of the right step, and no news of
the run's life.
"""

from __future__ import annotations

import json

from log_reading import read_run, values

from verl_tui.indicators import dialect, resolve


def line(step: int, score: float, response: str = "so it is", **more: object) -> str:
    return (
        json.dumps(
            {
                "input": f"q{score}",
                "output": response,
                "score": score,
                "step": step,
                **more,
            }
        )
        + "\n"
    )


def test_samples_on_the_console_belong_to_the_step_that_they_are_printed_in(tmp_path):
    path = tmp_path / "train.log"
    path.write_text(
        "step:1 - critic/score/mean:0.5\n[prompt] why\n[response] so so\n[ground_truth] x\n[score] 1.0\n"
        "step:2 - critic/score/mean:0.5\n"
    )
    run = read_run(path)
    assert values(run, "samples/score") == {2: 1.0}


def test_figures_are_no_news_of_the_run(tmp_path):
    (tmp_path / "train.log").write_text(
        "step:1 - critic/score/mean:0.5\nstep:2 - critic/score/mean:0.5\n"
    )
    (tmp_path / "rollouts").mkdir()
    (tmp_path / "rollouts" / "3.jsonl").write_text(line(3, 1.0))
    run = read_run(tmp_path)
    assert run.step == 2, "the dump of step 3 is written before its step is done"
    assert not run.restarts
    keys = [key for key in run.keys if key.startswith("samples/")]
    assert dialect(run.keys) == dialect(["critic/score/mean"])
    assert resolve(run.keys) == resolve(["critic/score/mean"])
    assert dialect(keys) == "other"
    assert not resolve(keys)
