"""Whose the runs are that W&B keeps: each start of a training has a directory, and its console
names it.
"""

from __future__ import annotations

import pytest
from log_reading import NOW, Watch, read_runs, values
from wandb_starts import T0, directory, kept, log, prints, starts
from wandb_writing import field

from verl_tui.config import Config
from verl_tui.monitor import load
from verl_tui.runs.views.state import State, state
from verl_tui.sources.discovery.found import FoundFile
from verl_tui.sources.discovery.grouping import reports
from verl_tui.sources.formats.console import reader as console

EXITED = field(18, field(2, 60))
FIRST = {"train.log": starts("abc", 0, range(1, 7)), **kept("abc", 0, range(1, 7))}


@pytest.mark.parametrize(
    ("line", "run"),
    [
        ("wandb: Run data is saved locally in /a/My Drive/wandb/offline-run-20261122_235944-55ahqe14", "55ahqe14"),
        ("wandb: Find logs at: ./wandb/offline-run-20261122_235944-55ahqe14/logs", "55ahqe14"),
        (r"wandb: Find logs at: .\wandb\run-20261122_235944-55ahqe14\logs", "55ahqe14"),
        ("wandb: 🚀 View run at https://wandb.ai/me/letters/runs/7if6fk7f", "7if6fk7f"),
        ("wandb: 🚀 View run at: https://wandb.ai/me/letters/runs/7if6fk7f?nw=nwuser", "7if6fk7f"),
        ("wandb: Restoring run /a/wandb/offline-run-20261122_235944-55ahqe14", None),
        ("wandb: Downloading artifact of https://wandb.ai/me/letters/runs/7if6fk7f", None),
        ("wandb: ⭐️ View project at https://wandb.ai/me/letters", None),
        ("wandb sync /a/wandb/offline-run-20261122_235944-55ahqe14", None),
    ],
)  # fmt: skip
def test_which_lines_name_a_run_of_their_program(tmp_path, line, run):
    log = tmp_path / "train.log"
    log.write_text(f"{line}\n")
    assert list(reports(FoundFile(log, console))) == [run] * (run is not None)


def wandb_files(run) -> list[str]:
    """Return the ids of W&B's logs in a run."""
    ids = (path.rpartition("/run-")[2] for path in run.paths)
    return sorted(id.removesuffix(".wandb") for id in ids if id.endswith(".wandb"))


def test_a_training_that_was_killed_and_resumed_is_one_run(tree):
    again = starts("def", 1, range(5, 11), 0.5)
    files = {**FIRST, "train.log": FIRST["train.log"] + again}
    files |= kept("def", 1, range(5, 11), 0.5, EXITED)
    (run,) = read_runs(tree(files)).values()
    assert wandb_files(run) == ["abc", "def"]
    assert values(run, "actor/loss") == {n: float(n) for n in range(1, 5)} | {
        n: n + 0.5 for n in range(5, 11)
    }
    assert [mark.step for mark in run.restarts] == [5]
    assert state(run, NOW) is State.FINISHED


def test_a_run_without_a_step_that_no_log_names_is_reported(tree):
    top = tree({"train.log": prints(range(1, 4)), **kept("abc", 0, range(0)), **kept("def", 1, range(1, 4))})  # fmt: skip
    (sentence,) = load([str(top)], Config(), NOW).sentences
    assert "run-abc.wandb: has no step so far" in sentence


# -- as it happens ---------------------------------------------------------------------------------


def seen(watch) -> list[list[str]]:
    """Look once; return W&B's runs in each run."""
    watch.look()
    return sorted(map(wandb_files, watch.runs.values()))


def append(path, text: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(text.encode() if isinstance(text, str) else text)


@pytest.mark.parametrize("named_first", [False, True])
def test_a_second_start_joins_while_one_watches(tree, named_first):
    top = tree(FIRST)
    watch = Watch(top)
    watch.look()
    (name,) = watch.runs
    second = top / "wandb" / directory("def", 1) / "run-def.wandb"
    steps = (top / "train.log", starts("def", 1, range(0))), (second, log(range(0)))
    looks = [["abc"]], [["abc", "def"]]
    for (path, text), ids in zip(
        steps if named_first else reversed(steps), looks, strict=True
    ):
        append(path, text)
        assert seen(watch) == ids
    append(top / "train.log", prints(range(5, 7), 0.5))
    second.write_bytes(log(range(5, 7), 0.5, began=T0 + 1000))
    assert [seen(watch) for _ in range(2)][-1] == [["abc", "def"]]
    (run,) = watch.runs.values()
    assert run.name == name
    assert values(run, "actor/loss") == {1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0, 5: 5.5, 6: 6.5}
    assert run.step == 6


def test_a_run_that_no_log_names_becomes_one_of_its_own_with_its_steps(tree):
    top = tree(FIRST)
    watch = Watch(top)
    watch.look()
    second = top / "wandb" / directory("def", 1) / "run-def.wandb"
    append(second, log(range(0)))
    assert seen(watch) == [["abc"]]
    second.write_bytes(log(range(1, 3)))
    assert [seen(watch) for _ in range(2)][-1] == [["abc"], ["def"]]
