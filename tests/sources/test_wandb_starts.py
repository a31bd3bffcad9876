"""Whose the runs are that W&B keeps: each start of a training has a directory, and its console
names it.
"""

from __future__ import annotations

import pytest
from log_reading import NOW, read_runs, values
from wandb_writing import field, history, written

from verl_tui.config import Config
from verl_tui.monitor import Monitor, load
from verl_tui.runs.views.state import State, state
from verl_tui.sources.discovery.found import FoundFile
from verl_tui.sources.discovery.grouping import reports
from verl_tui.sources.feed import Feed
from verl_tui.sources.formats.console import reader as console

T0 = 1_763_000_000.0
PLACE = "/home/me/letters/wandb/"
BEGUN = (
    "wandb: Tracking run with wandb version 0.31.0\nwandb: Run data is saved locally in "
    + PLACE
)
EXITED = field(18, field(2, 60))


def directory(run: str, number: int = 0) -> str:
    """Return the directory of a start."""
    return f"offline-run-20261122_10000{number}-{run}"


def prints(steps: range, value: float = 0.0) -> str:
    """Return what verl's console prints of some steps."""
    return "".join(
        f"step:{step} - actor/loss:{step + value} - training/epoch:0\n"
        for step in steps
    )


def starts(run: str, number: int, steps: range, value: float = 0.0) -> str:
    """Return what a console holds of a start that reports to W&B."""
    return f"{BEGUN}{directory(run, number)}\n{prints(steps, value)}"


def log(
    steps: range,
    value: float = 0.0,
    *further: bytes,
    began: float = T0,
    name: str = "",
) -> bytes:
    """Return W&B's log of some steps."""
    rows = [
        history(
            step, {"actor/loss": str(step + value), "_timestamp": str(began + step)}
        )
        for step in steps
    ]
    run = field(17, field(1, "x") + (field(8, name) if name else b""))
    return written([run, *rows, *further])


def kept(
    run: str, number: int, steps: range, value: float = 0.0, *further: bytes
) -> dict[str, bytes]:
    """Return the file that W&B keeps of a start."""
    return {
        f"wandb/{directory(run, number)}/run-{run}.wandb": log(
            steps, value, *further, began=T0 + 1000 * number
        )
    }


@pytest.fixture
def tree(tmp_path):
    """Make files from a mapping of paths to contents; return the directory."""

    def make(files):
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(
                content if isinstance(content, bytes) else content.encode()
            )
        return tmp_path

    return make


def wandb_files(run) -> list[str]:
    """Return the ids of W&B's logs in a run."""
    return sorted(
        path.rpartition("/run-")[2].removesuffix(".wandb")
        for path in run.paths
        if path.endswith(".wandb")
    )


def found(top) -> list[list[str]]:
    """Return for each run the ids of W&B's logs in it, with `log` for a console."""
    runs = read_runs(top).values()
    return sorted(
        [
            *(
                ["log"]
                if any(path.endswith((".log", ".out")) for path in run.paths)
                else []
            ),
            *wandb_files(run),
        ]
        for run in runs
    )


# -- what a console says ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "run"),
    [
        (
            "wandb: Run data is saved locally in /a/My Drive/wandb/offline-run-20261122_235944-55ahqe14",
            "55ahqe14",
        ),
        (
            "wandb: Find logs at: ./wandb/offline-run-20261122_235944-55ahqe14/logs",
            "55ahqe14",
        ),
        (r"wandb: Find logs at: .\wandb\run-20261122_235944-55ahqe14\logs", "55ahqe14"),
        ("wandb: 🚀 View run at https://wandb.ai/me/letters/runs/7if6fk7f", "7if6fk7f"),
        (
            "wandb: 🚀 View run at: https://wandb.ai/me/letters/runs/7if6fk7f?nw=nwuser",
            "7if6fk7f",
        ),
        ("wandb: Restoring run /a/wandb/offline-run-20261122_235944-55ahqe14", None),
        (
            "wandb: Downloading artifact of https://wandb.ai/me/letters/runs/7if6fk7f",
            None,
        ),
        ("wandb: ⭐️ View project at https://wandb.ai/me/letters", None),
        ("wandb sync /a/wandb/offline-run-20261122_235944-55ahqe14", None),
    ],
)
def test_which_lines_name_a_run_of_their_program(tmp_path, line, run):
    log = tmp_path / "train.log"
    log.write_text(f"{line}\n")
    assert list(reports(FoundFile(log, console))) == [run] * (run is not None)


# -- one training, several starts ------------------------------------------------------------------


RESUMED = {
    "train.log": starts("abc", 0, range(1, 7)) + starts("def", 1, range(5, 11), 0.5),
    **kept("abc", 0, range(1, 7)),
    **kept("def", 1, range(5, 11), 0.5, EXITED),
}


def test_a_training_that_was_killed_and_resumed_is_one_run(tree):
    (run,) = read_runs(tree(RESUMED)).values()
    assert wandb_files(run) == ["abc", "def"]
    assert values(run, "actor/loss") == {n: float(n) for n in range(1, 5)} | {
        n: n + 0.5 for n in range(5, 11)
    }
    assert [mark.step for mark in run.restarts] == [5]
    assert state(run, NOW) is State.FINISHED


@pytest.mark.parametrize(
    ("console_at", "wandb_at"), [("logs/", ""), ("", "out/"), ("logs/", "out/")]
)
def test_wherever_console_and_runs_lie(tree, console_at, wandb_at):
    files = {
        (wandb_at if name.startswith("wandb") else console_at) + name: data
        for name, data in RESUMED.items()
    }
    assert found(tree(files)) == [["log", "abc", "def"]]


def test_a_start_that_failed_before_its_first_step_is_in_nobodys_way(tree):
    files = {
        "train.log": starts("abc", 0, range(1, 7))
        + starts("ghi", 1, range(0))
        + starts("def", 2, range(5, 11)),
        **kept("abc", 0, range(1, 7)),
        **kept("ghi", 1, range(0)),
        **kept("def", 2, range(5, 11)),
    }
    assert found(tree(files)) == [["log", "abc", "def", "ghi"]]


# -- several trainings -----------------------------------------------------------------------------


def test_each_of_two_logs_has_the_run_that_it_names(tree):
    files = {
        "a.log": starts("def", 1, range(1, 7)),
        "b.log": starts("abc", 0, range(1, 9)),
        **kept("abc", 0, range(1, 9)),
        **kept("def", 1, range(1, 7)),
    }
    runs = read_runs(tree(files))
    assert {name: (wandb_files(run), run.step) for name, run in runs.items()} == {
        "a": (["def"], 6),
        "b": (["abc"], 8),
    }


def test_trainings_of_several_names_one_after_the_other_in_one_log_stay_apart(tree):
    parts = ["abc", "def", "ghi"]
    files = {
        "sweep.log": "".join(starts(run, n, range(1, 7)) for n, run in enumerate(parts))
    }
    for n, run in enumerate(parts):
        place = f"wandb/{directory(run, n)}/run-{run}.wandb"
        files[place] = log(range(1, 7), name=f"lr-{n}")
    assert found(tree(files)) == [["abc"], ["def"], ["ghi"], ["log"]]


def test_an_old_run_is_not_that_of_a_log_that_names_another(tree):
    top = tree(
        {
            "train.log": starts("new", 1, range(1, 7)),
            **kept("abc", 0, range(1, 9)),
            **kept("new", 1, range(0)),
        }
    )
    assert found(top) == [["abc"], ["log", "new"]]


def test_a_run_without_a_step_that_no_log_names_is_reported(tree):
    top = tree(
        {
            "train.log": prints(range(1, 4)),
            **kept("abc", 0, range(0)),
            **kept("def", 1, range(1, 4)),
        }
    )
    (sentence,) = load([str(top)], Config(), NOW).sentences
    assert "run-abc.wandb: has no step so far" in sentence


# -- as it happens ---------------------------------------------------------------------------------


class Watched:
    """A monitor of what a feed finds, look by look."""

    def __init__(self, top) -> None:
        self.top = top
        self.feed, self.monitor = Feed([str(top)]), Monitor(Config())
        self.look()

    def look(self) -> list[list[str]]:
        """Look and read once; return W&B's runs in each run."""
        self.monitor.apply(self.feed.scan(), NOW)
        for batch in self.feed.read():
            self.monitor.apply(batch, NOW)
        return sorted(wandb_files(run) for run in self.monitor.runs.values())


def append(path, text: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(text.encode() if isinstance(text, str) else text)


@pytest.mark.parametrize("named_first", [False, True])
def test_a_second_start_joins_while_one_watches(tree, named_first):
    top = tree(
        {"train.log": starts("abc", 0, range(1, 7)), **kept("abc", 0, range(1, 7))}
    )
    watched = Watched(top)
    (name,) = watched.monitor.runs
    second = top / "wandb" / directory("def", 1) / "run-def.wandb"
    steps = (top / "train.log", starts("def", 1, range(0))), (second, log(range(0)))
    looks = [["abc"]], [["abc", "def"]]
    for (path, text), ids in zip(
        steps if named_first else reversed(steps), looks, strict=True
    ):
        append(path, text)
        assert watched.look() == ids
    append(top / "train.log", prints(range(5, 7), 0.5))
    second.write_bytes(log(range(5, 7), 0.5, began=T0 + 1000))
    for _ in range(2):
        watched.look()
    (run,) = watched.monitor.runs.values()
    assert run.name == name
    assert wandb_files(run) == ["abc", "def"]
    assert values(run, "actor/loss") == {1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0, 5: 5.5, 6: 6.5}
    assert run.step == 6


def test_a_run_that_no_log_names_becomes_one_of_its_own_with_its_steps(tree):
    top = tree(
        {"train.log": starts("abc", 0, range(1, 7)), **kept("abc", 0, range(1, 7))}
    )
    watched = Watched(top)
    second = top / "wandb" / directory("def", 1) / "run-def.wandb"
    append(second, log(range(0)))
    assert watched.look() == [["abc"]]
    second.write_bytes(log(range(1, 3)))
    for _ in range(2):
        watched.look()
    assert sorted(wandb_files(run) for run in watched.monitor.runs.values()) == [
        ["abc"],
        ["def"],
    ]
