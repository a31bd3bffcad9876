"""The samples of a run: in memory within a budget, and dumps that stay on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.config import Config
from verl_tui.monitor import Monitor
from verl_tui.records import Batch, Dump, Sample, SourceStatus
from verl_tui.runs.samples import Place, Samples

if TYPE_CHECKING:
    from verl_tui.runs.run import Run

NOW = 1_800_000_000.0
TRAINED = Place(3, validation=False)
VALIDATED = Place(3, validation=True)


def sample(step: int, response: str = "yes", *, validation: bool = False) -> Sample:
    return Sample(step, "why", response, validation=validation)


def dump(
    step: int,
    size: int = 10,
    *,
    validation: bool = False,
    removed: bool = False,
    path: str = "",
) -> Dump:
    return Dump(step, path or f"/dumps/{step}.jsonl", validation, size, removed)


def loaded_run(*sources: tuple[str, str, Sample]) -> Run:
    """Return a run with samples of several sources: path, format and sample of each."""
    monitor = Monitor(Config())
    for path, format_name, one in sources:
        monitor.apply(Batch("run", SourceStatus(path, format_name), (one,)), NOW)
    return monitor.runs["run"]


def test_samples_lie_at_their_place() -> None:
    samples = Samples()
    for one in (
        sample(3),
        sample(1),
        sample(3, "no", validation=True),
        sample(3, "so"),
    ):
        samples.add(one, one.step or 0)
    assert samples.places == [Place(1, validation=False), TRAINED, VALIDATED]
    assert [one.response for one in samples.kept(TRAINED)] == ["yes", "so"]
    assert [one.response for one in samples.at(3)] == ["yes", "so", "no"]
    assert (samples.steps, len(samples)) == ([1, 3], 4)
    assert samples.kept(Place(2, validation=False)) == ()


def test_the_oldest_give_way() -> None:
    samples = Samples(budget=3000)
    for step in range(1, 8):
        samples.add(sample(step, "x" * 600), step)
    assert samples.steps == [5, 6, 7]
    assert [place.step for place in samples.places] == samples.steps
    assert samples.dropped == 4


def test_one_place_is_kept_whatever_its_size() -> None:
    samples = Samples(budget=10)
    samples.add(sample(1, "x" * 100), 1)
    samples.add(sample(1, "x" * 100), 1)
    assert len(samples) == 2


def test_what_counts_is_the_memory_of_all_texts() -> None:
    plain, further = Samples(), Samples()
    plain.add(sample(1, "日本" * 300), 1)
    assert plain.size > 2 * 600, "two bytes a character"
    further.add(Sample(1, "why", "yes", extras={"reasoning": "x" * 5000}), 1)
    assert further.size > 5000


def test_runs_with_many_samples_give_way_before_those_with_few(monkeypatch) -> None:
    monkeypatch.setattr("verl_tui.monitor.SAMPLE_BYTES", 20_000)
    monitor = Monitor(Config())
    for name, length in (("few", 100), ("many", 900), ("more", 1200)):
        status = SourceStatus(f"/{name}", "console")
        for step in range(1, 11):
            monitor.apply(Batch(name, status, (sample(step, "x" * length),)), NOW)
    few, many, more = (run.samples for run in monitor.runs.values())
    assert few.size + many.size + more.size <= 20_000
    assert (len(few), few.dropped) == (10, 0)
    assert many.dropped
    assert more.dropped
    assert many.steps[-1] == more.steps[-1] == 10


def test_samples_that_several_formats_have_are_shown_once_from_the_fullest() -> None:
    samples = Samples()
    for format_name, rank, texts in (
        ("console", 3, ["the answ…", "yes"]),
        ("completions", 7, ["the answer is", "yes"]),
        ("W&B table", 9, ["the answer is"]),
    ):
        for text in texts:
            samples.add(sample(3, text), 3, format_name, rank)
    assert [one.response for one in samples.kept(TRAINED)] == ["the answer is", "yes"]
    assert len(samples) == 2
    samples.forget(3, validation=False, format_name="completions")
    assert [one.response for one in samples.kept(TRAINED)] == ["the answ…", "yes"]


def test_what_two_files_of_one_format_have_is_all_of_a_step() -> None:
    run = loaded_run(
        ("/rank0.jsonl", "rollouts", sample(3, "a")),
        ("/rank1.jsonl", "rollouts", sample(3, "b")),
    )
    assert [one.response for one in run.samples.kept(TRAINED)] == ["a", "b"]


def test_the_oldest_that_several_formats_have_count_once() -> None:
    samples = Samples(budget=3000)
    for step in (1, 2, 3):
        for format_name in ("console", "completions"):
            samples.add(sample(step, "x" * 600), step, format_name)
    assert samples.dropped == 3 - len(samples.steps)
    assert samples.dropped


def test_what_is_forgotten_is_of_one_kind() -> None:
    samples = Samples()
    samples.add(sample(3), 3)
    samples.add(sample(3, validation=True), 3)
    before = samples.revision
    samples.forget(3, validation=True)
    samples.forget(9, validation=True)
    assert samples.places == [TRAINED]
    assert samples.revision == before + 1


def test_a_dump_is_a_place_while_it_is_there() -> None:
    samples = Samples()
    samples.add_dump(dump(5))
    samples.add_dump(dump(3, validation=True))
    samples.add(sample(3), 3)
    assert samples.places == [TRAINED, VALIDATED, Place(5, validation=False)]
    assert (samples.dump(VALIDATED), samples.dump(TRAINED)) == (
        dump(3, validation=True),
        None,
    )
    assert samples.steps == [3], "steps in memory"
    grown = dump(3, 20, validation=True)
    samples.add_dump(grown)
    assert samples.dump(VALIDATED) == grown
    samples.add_dump(dump(3, 0, validation=True, removed=True))
    assert samples.places == [TRAINED, Place(5, validation=False)]


def test_samples_in_memory_outlive_the_dump_of_their_place() -> None:
    samples = Samples()
    samples.add(sample(3), 3)
    samples.add_dump(dump(3))
    samples.add_dump(dump(3, removed=True))
    assert samples.places == [TRAINED]
    samples.add_dump(dump(3))
    samples.forget(3, validation=False)
    assert samples.places == [TRAINED]


def test_of_two_dumps_of_a_place_the_one_that_holds_is_not_removed_with_the_other() -> (
    None
):
    samples = Samples()
    samples.add_dump(dump(3, path="/a/3.jsonl"))
    samples.add_dump(dump(3, path="/b/3.jsonl"))
    samples.add_dump(dump(3, removed=True, path="/a/3.jsonl"))
    assert samples.dump(TRAINED) == dump(3, path="/b/3.jsonl")


def test_the_nearest() -> None:
    samples = Samples()
    assert samples.nearest_place(3) is None
    samples.add(sample(2), 2)
    samples.add_dump(dump(4))
    samples.add_dump(dump(6, validation=True))
    assert samples.nearest_place(3) == Place(4, validation=False), (
        "of two as near the newer"
    )
    assert (
        samples.nearest_place(9)
        == samples.nearest_place(0, validation=True)
        == Place(6, validation=True)
    )
    assert samples.nearest_place(9, validation=False) == Place(4, validation=False)
