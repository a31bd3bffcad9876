"""TensorBoard's event files: what TensorBoard's own reader finds in them is what the run says."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.cli import main
from verl_tui.distributions import of_values
from verl_tui.exporters import event_files
from verl_tui.exporters.event_files import EventFile
from verl_tui.exporters.tensorboard import LogDirectories, RunLogDirectory
from verl_tui.records import Batch, Dump, MetricRows, Restart, Sample, SourceStatus
from verl_tui.records import Histogram as HistogramRecord
from verl_tui.runs.run import Run

if TYPE_CHECKING:
    from pathlib import Path

    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from verl_tui.records import Record

NOW = 1_790_000_000.0


def taken(run: Run, *records: Record) -> Run:
    """Have a run take records, which were written long ago."""
    status = SourceStatus("log", "test", modified=NOW - 3600)
    run.apply(Batch(run.name, status, records), NOW)
    return run


def rows(keys: str, *lines: tuple[float, ...], first: int = 0) -> MetricRows:
    """Return rows of which each line begins with its step; each step takes ten seconds."""
    steps, *columns = zip(*lines, strict=True)
    places = range(first, first + len(lines))
    times = [NOW - 7200 + 10 * at for at in places]
    return MetricRows(tuple(keys.split()), steps, columns, places, times)


def dumped(path: Path, modified: float) -> Dump:
    return Dump(step=3, path=str(path), validation=False, size=100, modified=modified)


def found(directory: Path) -> EventAccumulator:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    everything = {"scalars": 0, "histograms": 0, "tensors": 0}
    accumulator = EventAccumulator(str(directory), size_guidance=everything)
    accumulator.Reload()
    return accumulator


def scalars(directory: Path, tag: str) -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in found(directory).Scalars(tag)]


def single(value: float) -> float:
    """Return a value as four bytes hold it."""
    (cut,) = struct.unpack("<f", struct.pack("<f", value))
    return float(cut)


def written(run: Run, directory: Path) -> Path:
    """Write what is new of a run, as a process would that ends then."""
    RunLogDirectory(directory).write(run, NOW)
    return directory


def test_nothing_is_written_through_a_link(tmp_path):
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    ours.mkdir()
    (ours / "a").symlink_to(theirs)
    run = taken(Run("a"), rows("score", (1, 0.5)))
    (said,) = LogDirectories(ours).write([run], NOW)
    assert said.startswith(f"{ours / 'a'}: is a link")
    assert not list(theirs.iterdir())


def test_a_disk_that_was_full_in_between_costs_nothing(tmp_path, monkeypatch):
    lines = [(step, step / 3, step / 7) for step in range(90)]
    run = taken(Run("a"), rows("score kl", *lines[:50]))
    directories = LogDirectories(tmp_path)
    list(directories.write([run], NOW))
    taken(run, rows("score kl", *lines[50:], first=50))
    flush = EventFile.flush

    def until_it_is_full(file: EventFile) -> None:
        flush(file)
        (path,) = (tmp_path / "a").iterdir()
        with path.open("r+b") as whole:
            whole.truncate(path.stat().st_size - 77)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(EventFile, "flush", until_it_is_full)
        with pytest.raises(OSError, match="No space"):
            list(directories.write([run], NOW))
    list(directories.write([run], NOW))
    for tag, at in (("score", 1), ("kl", 2)):
        expected = [(line[0], single(line[at])) for line in lines]
        assert scalars(tmp_path / "a", tag) == expected


def test_scalars_have_the_log_s_names_steps_values_and_times(tmp_path):
    lines = (1, 0.1, 1e-6), (2, 0.25, 1e-6), (5, -3.0, 9e-7)
    run = taken(Run("a"), rows("critic/score/mean actor/lr", *lines))
    written(run, tmp_path)
    expected = [(1, single(0.1)), (2, 0.25), (5, -3.0)]
    assert scalars(tmp_path, "critic/score/mean") == expected
    times = [event.wall_time for event in found(tmp_path).Scalars("actor/lr")]
    assert times == [NOW - 7200, NOW - 7190, NOW - 7180]


def test_an_export_goes_on_where_it_ended(tmp_path):
    run = taken(Run("a"), rows("a b", (1, 1.0, 0.5), (2, 2.0, 0.5)))
    written(run, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    written(run, tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    taken(run, rows("a", (3, 3.0), first=2))
    written(run, tmp_path)
    assert scalars(tmp_path, "a") == [(1, 1.0), (2, 2.0), (3, 3.0)]
    assert scalars(tmp_path, "b") == [(1, 0.5), (2, 0.5)]


def test_a_run_that_goes_back_takes_the_place_of_what_it_abandoned(tmp_path):
    run = taken(Run("a"), rows("a b", *((step, step, 9.0) for step in range(1, 5))))
    board = RunLogDirectory(tmp_path)
    board.write(run, NOW)
    taken(run, Restart("truncated"), rows("a", (3, 30.0), first=4))
    board.write(run, NOW)
    # What the run still holds of step 4 is what it shows.
    series = {key: run.series(key) for key in ("a", "b")}
    for key, one in series.items():
        assert one is not None
        assert scalars(tmp_path, key) == list(zip(one.steps, one.values, strict=True))
    assert scalars(tmp_path, "a")[:3] == [(1, 1.0), (2, 2.0), (3, 30.0)]


def test_distributions_are_histograms_and_not_their_quantiles(tmp_path):
    distribution = of_values([0.0, 0.5, 1.0, 1.0])
    assert distribution is not None
    keys = " ".join(f"ppo/grad_norm/{name}" for name in distribution.figures)
    figures = rows(keys, (7, *distribution.figures.values()))
    histogram = HistogramRecord("ppo/grad_norm", 7, *distribution.bins)
    run = taken(Run("a"), figures, histogram)
    accumulator = found(written(run, tmp_path))
    (event,) = accumulator.Histograms("ppo/grad_norm")
    shown = event.histogram_value
    assert (event.step, shown.min, shown.max) == (7, 0.0, 1.0)
    assert sum(shown.bucket) == shown.num == 4
    assert accumulator.Tags()["scalars"] == []


def test_scores_and_first_samples_of_a_step_go_in(tmp_path):
    shown = [
        Sample(3, f"prompt {at}", "# heading <b>```x```</b>", score=at / 10)
        for at in range(10)
    ]
    run = taken(Run("a"), rows("a", (3, 1.0)), *shown)
    accumulator = found(written(run, tmp_path))
    (scores,) = accumulator.Histograms("rollout/reward_dist")
    shown = scores.histogram_value
    assert (scores.step, shown.num, shown.max) == (3, 10, 0.9)
    tags = accumulator.Tags()["tensors"]
    assert tags == [f"rollout/sample_{at}/text_summary" for at in range(4)]
    (text,) = accumulator.Tensors(tags[1])
    (said,) = text.tensor_proto.string_val
    assert b"prompt 1" in said
    assert b"````text\n# heading <b>```x```</b>\n````" in said


def test_a_dump_is_read_once_it_has_come_to_rest(tmp_path):
    dump = tmp_path / "3.jsonl"
    form = '{{"input": "p", "output": "r", "score": {}, "step": 3}}\n'
    dump.write_text("".join(map(form.format, range(6))), encoding="utf-8")
    run = taken(Run("a"), rows("a", (3, 1.0)), dumped(dump, NOW - 1))
    board = RunLogDirectory(tmp_path / "board")
    board.write(run, NOW)
    assert found(board.directory).Tags()["histograms"] == []
    board.write(run, NOW + 60)
    board.write(run, NOW + 90)
    (scores,) = found(board.directory).Histograms("rollout/reward_dist")
    assert scores.histogram_value.num == 6


def test_another_program_s_files_are_left_alone_and_reported(tmp_path):
    theirs = tmp_path / "a" / "events.out.tfevents.1700000000.host.1.0"
    theirs.parent.mkdir()
    theirs.write_bytes(b"theirs")
    runs = [taken(Run(name), rows("a", (1, 1.0))) for name in ("a", "b")]
    board = LogDirectories(tmp_path)
    said = list(board.write(runs, NOW))
    assert [one for one in said if theirs.name in one and "of another program" in one]
    assert theirs.read_bytes() == b"theirs"
    assert [path.name for path in theirs.parent.iterdir()] == [theirs.name]
    assert scalars(tmp_path / "b", "a") == [(1, 1.0)]
    assert list(board.write(runs, NOW)) == []


def test_an_export_that_writes_nothing_fails_and_says_so(tmp_path, asked):
    theirs, board = tmp_path / "theirs", tmp_path / "board"
    theirs.mkdir()
    board.mkdir()
    (board / "a").symlink_to(theirs)
    logs = [tmp_path / f"{name}.jsonl" for name in "ab"]
    for log in logs:
        log.write_text('{"step": 1, "data": {"loss": 0.5}}\n')
    argv = ["export", "tensorboard", "-o", str(board), str(logs[0])]
    assert asked(*argv, code=3).err.endswith("verl-tui: nothing was written\n")
    assert main([*argv, str(logs[1])]) == 0, "one of two was"
    assert main([*argv, str(logs[1])]) == 0, "all is there already"


steps = st.lists(st.integers(0, 40), min_size=1, max_size=12)


@given(st.lists(steps, min_size=1, max_size=4))
def test_however_a_log_comes_the_directory_holds_what_the_run_says(
    tmp_path_factory, parts
):
    directory = tmp_path_factory.mktemp("board")
    run = Run("a")
    count = 0
    for part in parts:
        lines = ((step, float(at)) for at, step in enumerate(part, count))
        taken(run, rows("a", *lines, first=count))
        count += len(part)
        written(run, directory)
    series = run.series("a")
    assert series is not None
    held, values = event_files.read_event_files(directory).scalars["a"]
    assert (list(held), list(values)) == (list(series.steps), list(series.values))
    assert scalars(directory, "a") == [*zip(held, values, strict=True)]
