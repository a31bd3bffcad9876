"""The benchmark's table, and the event files that it makes itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import made_events
from benchmarks.results import BEGIN, END, load_words, write
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event

BENCHMARKS = Path(__file__).parent / "benchmarks"


def test_results_take_the_place_of_older_ones_in_a_page(tmp_path):
    page = tmp_path / "README.md"
    page.write_text(f"# Speed\n\n{BEGIN}\nolder\n{END}\n\nmore\n", encoding="utf-8")
    write(page, "| new |")
    write(page, "| newest |")
    assert (
        page.read_text(encoding="utf-8")
        == f"# Speed\n\n{BEGIN}\n| newest |\n{END}\n\nmore\n"
    )


@pytest.mark.parametrize(
    "older", [None, "without a place\n", f"{BEGIN}\nwithout an end\n"]
)
def test_results_are_all_of_a_page_without_a_place_for_them(tmp_path, older):
    page = tmp_path / "speed.md"
    if older is not None:
        page.write_text(older, encoding="utf-8")
    write(page, "| new |")
    assert page.read_text(encoding="utf-8") == "| new |\n"


def test_other_work_on_the_machine_is_reported():
    assert "busy" in load_words(before=1e6, after=1.0)
    assert "busy" not in load_words(before=0.0, after=1e6)


def test_tensorboard_reads_all_events_that_are_made(tmp_path, monkeypatch):
    monkeypatch.setattr(made_events, "TAGS", tags := made_events.TAGS[:2])
    path = tmp_path / "events.out.tfevents.1.host.1.0"
    made_events.write_events(path, 130)  # from step 128 on a step takes a byte more
    version, *events = map(Event.FromString, RawEventFileLoader(str(path)).Load())
    assert version.file_version == "brain.Event:2"
    assert [(event.step, event.summary.value[0].tag) for event in events] == [
        (step, tag) for step in range(1, 131) for tag in tags
    ]
    assert all(0 <= event.summary.value[0].simple_value < 1 for event in events)


@pytest.mark.thorough
def test_a_try_of_some_parts_writes_a_table(tmp_path):
    page = tmp_path / "speed.md"
    parts = ("judging", "file-logger", "tensorboard")
    command = [sys.executable, BENCHMARKS, "--small", "--only", *parts, "--write", page]
    subprocess.run(command, check=True, capture_output=True)
    text = page.read_text(encoding="utf-8")
    assert "failed" not in text
    assert "÷ orjson" in text
    assert "EventAccumulator" in text
