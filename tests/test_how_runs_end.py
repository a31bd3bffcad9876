"""How a run is said to have ended: its state, the reason and the exit code of `check`, at any age."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, NamedTuple

import pytest
from file_writing import prefixed, write_file
from wandb_writing import field, history, written

from verl_tui.check.data import exit_code, report
from verl_tui.check.note import note_text
from verl_tui.cli import main
from verl_tui.config import Config
from verl_tui.monitor import load
from verl_tui.runs.views.state import State, state_words

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_790_000_000.0
AGES = (90.0, 7200.0, 3 * 86400.0)
FRAMES = '  File "/opt/job/train.py", line 41, in <module>\n    main(config)\n'
TRACE = f"Traceback (most recent call last):\n{FRAMES}"
INTERRUPTED = "the run was interrupted by its user at step 9: "
STOPPED = "the run was stopped from outside at step 9: "
CRASHED = "the run crashed at step 9: "


def verls(*steps: int) -> str:
    return "".join(
        f"(TaskRunner pid=31) step:{at} - actor/entropy:0.4 - critic/rewards/mean:0.3\n"
        for at in steps
    )


class End(NamedTuple):
    text: str
    why: str = ""
    """The message about the end, empty where there is none."""

    @property
    def state(self) -> str:
        """What is said of a run whose log says no more; an interrupt is no crash."""
        return "ended?" if self.why in ("", INTERRUPTED) else "crashed"


ELASTIC = "W0411 09:12:55.104 811 torch/distributed/elastic/agent/server/api.py:723] Received {} death signal, shutting down workers"
SLURM = "srun: error: gpu-7: task 0: Exited with exit code {}"
JUDGED = prefixed("(AgentLoopWorker pid=44) ", f"{TRACE}TimeoutError: a tool took 20 s")
ENDS = {
    "elastic's SIGINT": End(f"^C{ELASTIC.format(2)}", INTERRUPTED),
    "its name": End(ELASTIC.format("Signals.SIGINT"), INTERRUPTED),
    "its exception": End(
        f"{TRACE}torch.distributed.elastic.multiprocessing.api.SignalException: Process 811 got signal: 2",
        INTERRUPTED,
    ),
    "a rank's": End(prefixed("[rank2]: ", f"{TRACE}KeyboardInterrupt"), INTERRUPTED),
    "a child's code": End(
        "E0411 09:12:55.104 811 elastic/multiprocessing/api.py:874] failed (exitcode: -2) local_rank: 0 (pid: 812)",
        INTERRUPTED,
    ),
    "a job step's code": End(SLURM.format(130), INTERRUPTED),
    "a launcher's child": End(
        f"{TRACE}subprocess.CalledProcessError: Command '['python']' died with <Signals.SIGINT: 2>.",
        INTERRUPTED,
    ),
    "elastic's SIGTERM": End(ELASTIC.format(15), STOPPED),
    "SIGTERM's name": End(ELASTIC.format("Signals.SIGTERM"), STOPPED),
    "a shell's code of SIGTERM": End(SLURM.format(143), STOPPED),
    "SIGINT behind a rank's error": End(
        prefixed("[rank1]: ", f"{TRACE}ValueError: no prompt") + ELASTIC.format(2),
        f"{CRASHED}ValueError: no prompt",
    ),
    "a debugger that was left": End(f"(Pdb) q\n{TRACE}bdb.BdbQuit", f"{CRASHED}bdb.BdbQuit"),
    "a rank's debugger": End(
        "(Pdb) q\n" + prefixed("[rank0]: ", f"{TRACE}bdb.BdbQuit"),
        f"{CRASHED}bdb.BdbQuit",
    ),
    "a word in capitals": End(f"{TRACE}queue.Empty", f"{CRASHED}queue.Empty"),
    "one of their own": End(
        f"{TRACE}    ~~~~^^^\nrollout.pool.<locals>.Starved: 3 of 8 workers",
        f"{CRASHED}rollout.pool.<locals>.Starved: 3 of 8 workers",
    ),
    "behind another": End(
        f"{TRACE}queue.Empty\n\nDuring handling of the above exception, another exception occurred:\n\n{TRACE}GaveUp",
        f"{CRASHED}GaveUp",
    ),
    "a log that ends in a traceback": End(TRACE, f"{CRASHED}its log ends within a traceback"),
    "nothing": End(""),
    "a worker's last error": End(
        prefixed("(RewardLoopWorker pid=44) ", f"{TRACE}queue.Empty"),
        f"{CRASHED}queue.Empty (RewardLoopWorker pid 44)",
    ),
    "a caught error of a worker": End(JUDGED + verls(10, 11)),
    "an old error, then the driver's own end": End(
        JUDGED + verls(10, 11) + f"{TRACE}ray.exceptions.RayActorError: The actor died unexpectedly.",
        "the run crashed at step 11: a Ray worker died: ray.exceptions.RayActorError",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_how_a_console_says_it_ended(name, tmp_path):
    end = ENDS[name]
    log = tmp_path / "train.log"
    import_ = f"{TRACE}ModuleNotFoundError: No module named 'apex'"
    start = prefixed("(WorkerDict pid=50) ", import_)
    log.write_text(f"{start}{verls(*range(1, 10))}{end.text}\n")
    for age in AGES:
        os.utime(log, (NOW - age, NOW - age))
        assert_end(tmp_path, end.state, end.why, 2 if end.state == "crashed" else 0)


def test_a_workers_error_that_the_run_has_survived_before_is_no_crash(tmp_path):
    log = tmp_path / "train.log"
    log.write_text(f"{verls(8, 9)}{JUDGED}{verls(10, 11)}{JUDGED}")
    os.utime(log, (NOW - AGES[-1], NOW - AGES[-1]))
    state, said, code = end_of(tmp_path)
    assert (state, code) == ("ended?", 1)
    assert said.startswith("the run ended at step 11: ")


def test_an_optional_import_that_fails_at_the_start_is_no_end(tmp_path):
    log = tmp_path / "train.log"
    begun = f"***** Running training *****\n{TRACE}ImportError: no apex\n"
    log.write_text(begun)
    os.utime(log, (NOW - 90, NOW - 90))
    assert end_of(tmp_path)[0] == "crashed"
    log.write_text(f"{begun}  Total optimization steps = 60\n")
    os.utime(log, (NOW - 90, NOW - 90))
    assert end_of(tmp_path) == ("waiting", "", 0)


def end_of(path: Path) -> tuple[str, str, int]:
    """Return the state of the only run, what is said of its end, and the exit code; the state for
    people doubts only an end that the log says nothing of.
    """
    monitor = load([str(path)], Config(), NOW)
    found = report(monitor, NOW)
    (run,) = found["runs"]
    if run["state"] == State.ENDED.value:
        known = any(INTERRUPTED in one["message"] for one in run["findings"])
        words = f", {state_words(*monitor.runs.values(), State.ENDED)}, "
        assert words == (", stopped, " if known else ", stopped?, ")
        said = note_text(found, monitor, NOW, width=None, colour=False)
        assert words in said.partition("\n")[0]
    ends = [one["message"] for one in run["findings"] if one["id"] == "crash"]
    return run["state"], "".join(ends), exit_code(found)


def assert_end(path: Path, state: str, why: str, code: int) -> None:
    """Hold how the only run has ended; of the message its beginning is known, or that there is
    none.
    """
    found, said, exits = end_of(path)
    assert (found, exits) == (state, code)
    assert said.startswith(why)
    assert bool(said) is bool(why)


def kept(text: str, *, raw: bool = True) -> list[bytes]:
    """Return the records with which wandb keeps what was printed, the pieces as they were
    written.
    """
    pieces = [one for line in text.splitlines() for one in (line, "\n")]
    kind = 13 if raw else 4
    return [field(kind, field(1, 1) + field(3, one)) for one in pieces]


def exited(code: int) -> bytes:
    return field(18, field(1, code) if code else b"")


JUDGE = (
    f"\r 40%|####      | 8/20 [00:05<00:09,  1.31it/s]{TRACE}queue.Empty: no answer\n"
)


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize(
    ("console", "late", "code", "state", "why", "exits"),
    [
        (f"{TRACE}KeyboardInterrupt\n", False, 255, "ended?", INTERRUPTED, 0),
        ("", False, 255, "ended?", INTERRUPTED, 0),
        (JUDGE, False, 1, "crashed", f"{CRASHED}queue.Empty: no answer", 2),
        (JUDGE, True, 1, "crashed", "the run crashed at step 10: queue.Empty: no answer", 2),
        (JUDGE, False, 255, "crashed", f"{CRASHED}queue.Empty: no answer", 2),
        (JUDGE, False, 0, "finished", "", 0),
        (prefixed("[rank0]: ", f"{TRACE}queue.Empty"), False, 1, "crashed", f"{CRASHED}queue.Empty", 2),
        ("", False, 1, "crashed", f"{CRASHED}W&B: the run exited with code 1", 2),
    ],
)  # fmt: skip
def test_how_wandbs_own_log_says_it_ended(
    console, late, code, state, why, exits, raw, tmp_path
):
    steps = [history(at, {"reward": "0.5"}) for at in range(1, 10)]
    # wandb holds a step back until the next begins, or the run ends
    held = [history(10, {"reward": "0.5"})] if late else []
    earlier = kept(f"{TRACE}ImportError: no apex\n", raw=raw)
    data = written([*earlier, *steps, *kept(console, raw=raw), *held, exited(code)])
    (tmp_path / "run-x.wandb").write_bytes(data)
    assert_end(tmp_path, state, why, exits)


def test_a_log_beside_wandbs_says_why_it_exited(tmp_path):
    steps = [history(at, {"reward": "0.5"}) for at in range(1, 10)]
    (tmp_path / "run-x.wandb").write_bytes(written([*steps, exited(255)]))
    write_file(tmp_path / "files" / "output.log", f"{verls(9)}{TRACE}OSError: 28\n")
    assert end_of(tmp_path) == ("crashed", f"{CRASHED}OSError: 28", 2)


@pytest.mark.parametrize(
    ("end", "word", "look"),
    [
        ("", "stopped?", "now, whether it should still run"),
        (f"{TRACE}KeyboardInterrupt\n", "stopped", "none: its user has stopped it"),
    ],
)
def test_all_that_people_read_has_one_word_for_it(tmp_path, capsys, end, word, look):
    log = tmp_path / "run.log"
    log.write_text(f"{verls(9)}{end}")
    os.utime(log, (1e9, 1e9))
    for words in ("doctor", "check", "get state", "compare", "report --status"):
        main([*words.split(), str(log)])
        said = capsys.readouterr().out
        assert re.search(rf"(^|\W){re.escape(word)}[ ,;]", said), words
        assert "ended?" not in said
    assert f"**next check**: {look}\n" in said
    main(["get", "state", "--json", str(log)])
    assert json.loads(capsys.readouterr().out)["state"] == "ended?"


BATCHES, EACH = 641, 4
"""Batches of an epoch, and of a step: 160 steps and a quarter."""


def share_at(step: int, steps: int | None) -> float:
    """Return the epochs seen at a step, as Hugging Face's trainer counts batches.

    Args:
        step: The step.
        steps: Of an epoch, with its last, shorter one; None where the next epoch makes up for it.
    """
    if steps is None:
        return step * EACH / BATCHES
    epoch, within = divmod(step - 1, steps)
    return epoch + min(1.0, (within + 1) * EACH / BATCHES)


@pytest.mark.parametrize(
    ("at", "epochs", "steps", "exits", "state", "total"),
    [
        # up to transformers 4.49 a rest is not made, which nothing in the log tells
        (320, 2, None, True, "finished", 321),
        (318, 2, None, False, "ended?", 321),
        (322, 2, 161, True, "finished", 322),  # from 4.50 on
        (320, 2, 161, False, "ended?", 322),
        (161, 1, 161, False, "finished", 161),
        (150, 1, 161, True, "ended?", 161),
    ],
)
def test_the_last_step_by_shares_of_epochs(
    at, epochs, steps, exits, state, total, tmp_path
):
    settings = {"num_train_epochs": epochs, "max_steps": -1}
    config = b"".join(
        field(1, field(1, key) + field(16, str(value)))
        for key, value in settings.items()
    )
    rows = []
    for step in range(1, at + 1):
        epoch = repr(share_at(step, steps))
        rows.append(
            history(step, {"train/global_step": str(step), "train/epoch": epoch})
        )
    log = tmp_path / "run-x.wandb"
    ends = [exited(0)] if exits else []
    log.write_bytes(written([field(17, field(4, config)), *rows, *ends]))
    os.utime(log, (NOW - 7200, NOW - 7200))
    (run,) = report(load([str(tmp_path)], Config(), NOW), NOW)["runs"]
    assert (run["state"], run["step"], run["total_steps"]) == (state, at, total)
