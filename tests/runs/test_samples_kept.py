"""The samples of a run: in memory within a budget, and dumps that stay on disk."""

from __future__ import annotations

from verl_tui.config import Config
from verl_tui.monitor import Monitor
from verl_tui.records import Batch, Dump, Sample, SourceStatus
from verl_tui.runs.samples import Place, Samples

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


def test_samples_lie_at_their_place():
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
    assert [one.response for one in samples.kept(VALIDATED)] == ["no"]
    assert samples.kept(Place(2, validation=False)) == ()


def test_the_oldest_give_way(monkeypatch):
    monkeypatch.setattr("verl_tui.runs.samples.SAMPLE_BYTES", 3000)
    samples = Samples()
    for step in range(1, 8):
        samples.add(sample(step, "x" * 600), step)
    assert [place.step for place in samples.places] == [5, 6, 7]
    assert samples.dropped == 4


def test_runs_with_many_samples_give_way_before_those_with_few(monkeypatch):
    monkeypatch.setattr("verl_tui.monitor.SAMPLE_BYTES", 20_000)
    monitor = Monitor(Config())
    for name, length in (("few", 100), ("many", 900), ("more", 1200)):
        status = SourceStatus(f"/{name}", "console")
        for step in range(1, 11):
            monitor.apply(Batch(name, status, (sample(step, "x" * length),)), NOW)
    few, many, more = (run.samples for run in monitor.runs.values())
    assert few.size + many.size + more.size <= 20_000
    assert (len(few.places), few.dropped) == (10, 0)
    assert many.dropped
    assert more.dropped
    assert many.places[-1].step == more.places[-1].step == 10


def test_samples_that_several_formats_have_are_shown_once_from_the_fullest():
    samples = Samples()
    for format_name, rank, texts in (
        ("console", 3, ["the answ…", "yes"]),
        ("completions", 7, ["the answer is", "yes"]),
        ("W&B table", 9, ["the answer is"]),
    ):
        for text in texts:
            samples.add(sample(3, text), 3, format_name, rank)
    assert [one.response for one in samples.kept(TRAINED)] == ["the answer is", "yes"]
    samples.forget(3, validation=False, format_name="completions")
    assert [one.response for one in samples.kept(TRAINED)] == ["the answ…", "yes"]


def test_a_dump_is_a_place_while_it_is_there():
    samples = Samples()
    samples.add_dump(dump(5))
    samples.add_dump(dump(3, validation=True))
    samples.add(sample(3), 3)
    assert samples.places == [TRAINED, VALIDATED, Place(5, validation=False)]
    assert (samples.dump(VALIDATED), samples.dump(TRAINED)) == (
        dump(3, validation=True),
        None,
    )
    grown = dump(3, 20, validation=True)
    samples.add_dump(grown)
    assert samples.dump(VALIDATED) == grown
    samples.add_dump(dump(3, 0, validation=True, removed=True))
    assert samples.places == [TRAINED, Place(5, validation=False)]


def test_the_nearest():
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
