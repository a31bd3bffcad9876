"""Looking into samples: pages fill by themselves, and nothing is read where somebody waits for
it.
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from jsonl import write_jsonl

from verl_tui.on_demand.samples import Hits, SampleBrowser, SamplePage
from verl_tui.records import Dump, Sample
from verl_tui.rendering.samples.query import SampleQuery
from verl_tui.rendering.text.search import Search
from verl_tui.runs.samples import Place, Samples
from verl_tui.sources.folders.dumps import DumpFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PLACE = Place(3, validation=False)


class Screen:
    """Asks for what it shows each time it is told that there is more."""

    def __init__(self) -> None:
        self.samples = Samples()
        self.news = threading.Event()
        self.notices = 0
        self.browser = SampleBrowser(self.notify)

    def notify(self) -> None:
        self.notices += 1
        self.news.set()

    def page(self) -> SamplePage:
        return self.browser.page(self.samples, PLACE)

    def until(self, asked: Callable[[SamplePage], Any]) -> Any:
        """Draw until what is asked for is there."""
        while True:
            self.news.clear()
            if found := asked(self.page()):
                return found
            assert self.news.wait(10), "nothing more comes"

    def sample(self, index: int) -> Sample:
        found: Sample = self.until(lambda page: page.sample(index))
        return found

    def known(self) -> SamplePage:
        """Return the page once all is known of it."""
        page: SamplePage = self.until(
            lambda page: page.complete and len(page.facts) == page.count and page
        )
        return page

    def hits(self, text: str) -> Hits:
        """Return where a text as it stands is found."""
        query = SampleQuery(searches=(Search(text, literal=True),))
        found: Hits = self.until(
            lambda page: (hits := page.hits(query)).complete and hits
        )
        return found

    def dump(self, path: Path, *rows: dict[str, Any]) -> None:
        """Write a dump and take note of it as its source does."""
        self.note(write_jsonl(path, rows))

    def note(self, path: Path) -> None:
        stat, at = path.stat(), path.stat().st_mtime_ns / 1e9
        dump = Dump(PLACE.step, str(path), False, stat.st_size, modified=at)  # noqa: FBT003
        self.samples.add_dump(dump)


@pytest.fixture
def screen():
    screen = Screen()
    yield screen
    screen.browser.stop()


def row(number: int, **more: Any) -> dict[str, Any]:
    texts = {"input": f"question {number // 4}", "output": f"Answer {number}"}
    return {**texts, "score": float(number % 2), **more}


def test_no_file_is_touched_by_who_asks(screen, tmp_path, monkeypatch):
    threads = set()
    read = DumpFile.index

    def index(file: Any, *args: Any) -> bool:
        threads.add(threading.current_thread().name)
        return read(file, *args)

    monkeypatch.setattr(DumpFile, "index", index)
    screen.dump(tmp_path / "3.jsonl", row(0))
    screen.sample(0)
    assert threads == {"samples"}


def test_samples_in_memory_are_there_at_once(screen):
    extras = {"acc": True, "n": 10**400, "pred": "x"}
    for number in range(5):
        one = Sample(3, "why", f"because {number}", float(number), extras=extras)
        screen.samples.add(one, 3)
    page = screen.page()
    assert (page.count, page.complete, len(page.facts)) == (5, True, 5)
    assert page.sample(4) is screen.samples.kept(PLACE)[4]
    assert page.sample(5) is page.sample(-1) is None
    assert page.facts[2].score == 2.0
    assert page.facts[0].numbers["acc"] == 1.0
    assert page.facts[0].group is not None
    assert screen.hits("CAUSE 3").rows == []
    assert screen.hits("cause 3").rows == [3]
    screen.samples.add(Sample(3, "why", "because 3 again"), 3)
    page = screen.page()
    assert (page.count, len(page.facts)) == (6, 6)
    assert screen.hits("cause 3").rows == [3, 5]


def test_a_step_made_again_begins_with_the_same_sample(screen):
    for score, answer in ((0.0, "seven"), (1.0, "eight")):
        screen.samples.forget(*PLACE, "")
        screen.samples.add(Sample(3, "why", "because", 1.0), 3)
        screen.samples.add(Sample(3, "how", answer, score), 3)
        page = screen.page()
        assert page.facts[1].score == score
        assert screen.hits("eight").rows == ([1] if answer == "eight" else [])


def test_search(screen, tmp_path):
    rows = [row(i, gts=f"truth {i}", note={"a": f"deep {i}"}) for i in range(20)]
    screen.dump(tmp_path / "3.jsonl", *rows)
    assert screen.hits("answer 7").rows == [7]
    assert screen.hits("Answer 7").rows == [7]
    assert screen.hits("aNSWER 7").rows == []
    assert screen.hits("question 2").rows == [8, 9, 10, 11]
    assert screen.hits("truth 19").rows == screen.hits('"deep 19"').rows == [19]
    assert screen.hits("(").rows == [], "plain text"
    assert screen.hits("answer").searched == 20


def test_a_dump_that_grows(screen, tmp_path):
    path = tmp_path / "3.jsonl"
    screen.dump(path, row(0), row(1))
    assert screen.hits("answer").rows == [0, 1]
    facts = screen.known().facts
    with path.open("a") as file:
        file.write(json.dumps(row(2)) + "\n" + json.dumps(row(3))[:10])
    screen.note(path)
    screen.until(lambda page: page.count == 3)
    assert screen.known().facts is facts
    assert screen.hits("answer").rows == [0, 1, 2]
    assert screen.sample(2).response == "Answer 2"


def test_a_dump_that_is_written_again(screen, tmp_path):
    path = tmp_path / "3.jsonl"
    screen.dump(path, *(row(i) for i in range(6)))
    assert screen.sample(1).response == "Answer 1"
    assert screen.hits("answer 5").rows == [5]
    screen.dump(path, *(row(i, output=f"Other {i}") for i in range(3)))
    screen.until(lambda page: page.count == 3)
    assert screen.sample(1).response == "Other 1"
    assert len(screen.known().facts) == 3
    assert screen.hits("answer 5").rows == []


def test_a_row_that_cannot_be_read_says_so(screen, tmp_path):
    path = tmp_path / "3.jsonl"
    path.write_text(json.dumps(row(0)) + '\n{"input": \x1b[31m\n')
    screen.note(path)
    sample = screen.sample(1)
    assert "3.jsonl, line 2: not JSON" in sample.extras["unreadable"]
    assert "\x1b" not in sample.response
    assert screen.known().facts[1].score is None


def test_a_dump_that_is_gone(screen, tmp_path):
    path = tmp_path / "3.jsonl"
    screen.dump(path, row(0))
    path.unlink()
    assert screen.until(lambda page: page.problem) == "no such file or directory"
    assert screen.page().sample(0) is None
    screen.dump(path, row(0))
    assert screen.sample(0).response == "Answer 0", "it is tried again"
