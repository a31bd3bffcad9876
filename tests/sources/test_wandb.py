"""W&B's logs and tables: what wandb itself wrote, real runs, and what is left of damaged ones."""

from __future__ import annotations

import json
import math
import os
import random
import struct
import subprocess
import sys
import zlib
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_reading import drain, drain_all, feed_in_pieces, read_run, values
from property_examples import examples
from wandb_writing import field, history, item, stats, written

from verl_tui.distributions import quantiles
from verl_tui.records import Event, EventKind, Histogram, MetricRows, Sample, Settings, Unreadable
from verl_tui.runs.views.state import State, state
from verl_tui.sources.formats.wandb import reader as wandb
from verl_tui.sources.formats.wandb import sample_tables as wandb_tables
from verl_tui.sources.source import FileSource

LOGS = Path(os.environ.get("VERL_TUI_LOGS", Path(__file__).parents[3] / "shared" / "logs"))
OMNI = LOGS / "JOY-SWang__R1-AQA-Omni" / "wandb"
NAMED = (
    "run-20250612_081149-e845csgm/run-e845csgm.wandb",
    "run-20250612_083819-asc2sncx/run-asc2sncx.wandb",
)
REAL = [path for name in NAMED if (path := OMNI / name).is_file()]
nan, inf = math.nan, math.inf


def source(tmp_path: Path, data: bytes) -> FileSource:
    path = tmp_path / "run-x.wandb"
    path.write_bytes(data)
    return FileSource(path, wandb)


def said(records: list[object]) -> dict[str, dict[int, list[str]]]:
    """Return every value that rows hold, by key and step, in their order."""
    found: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for rows in records:
        if isinstance(rows, MetricRows):
            for key, column in zip(rows.keys, rows.columns, strict=True):
                for step, value in zip(rows.steps, column, strict=True):
                    found[key][step].append(repr(value))
    return {key: dict(steps) for key, steps in found.items()}


# -- what records say ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "number", ["9" * 25, "-" + "9" * 400, "9" * 5000, "1e999"], ids=["25", "-400", "5000", "inf"]
)
def test_numbers_of_any_size(tmp_path, number):
    numbers = {"a": number, "d": f'{{"e": {number}}}', "trainer/global_step": number, "b": "2"}
    found = said(drain(source(tmp_path, written([history(1, numbers), history(2, {"b": "3"})]))))
    assert found["b"] == {1: ["2.0"], 2: ["3.0"]}
    assert list(found["a"].values()) == list(found["d.e"].values()) == [[repr(float(number))]]


def test_numbers_as_wandb_writes_them(tmp_path):
    numbers = {
        "loss": "-0", "nan": "NaN", "inf": "Infinity", "low": "-Infinity", "word": '"NaN"', "flag": "true",
        "none": "null", "big": "1e+20", "text": '"abc"', "list": "[1,2]", ("a", "b.c"): "3", "d": '{"e": {"f": 4}}',
        "é ö": "1.5", "_runtime": "2.5", "_timestamp": "1.7e9", "_step": "7",
    }  # fmt: skip
    histogram, rows = drain(source(tmp_path, written([history(7, numbers)])))
    assert (histogram.key, histogram.step, sum(histogram.counts)) == ("list", 7, 2)
    assert dict(zip(rows.keys, [repr(column[0]) for column in rows.columns], strict=True)) == {
        "loss": "-0.0", "nan": "nan", "inf": "inf", "low": "-inf", "word": "nan", "flag": "1.0", "none": "nan",
        "big": "1e+20", "a.b.c": "3.0", "d.e.f": "4.0", "é ö": "1.5", "list/mean": "1.5", "list/min": "1.0",
        "list/p05": "1.05", "list/p25": "1.25", "list/p50": "1.5", "list/p75": "1.75", "list/p95": "1.95",
        "list/max": "2.0",
    }  # fmt: skip
    assert (list(rows.steps), list(rows.times)) == ([7], [1.7e9])


def test_items_of_unusual_form_between_usual_ones(tmp_path):
    numbers = {"a": "1", "long " * 30: "2", "b": "-0", "é": "3", "c": "4.5e-3", "text": '"x"'}
    found = said(drain(source(tmp_path, written([history(7, numbers)] * 2))))
    assert {key: steps[7][0] for key, steps in found.items()} == {
        "a": "1.0", "long " * 30: "2.0", "b": "-0.0", "é": "3.0", "c": "0.0045",
    }  # fmt: skip


@pytest.mark.parametrize("number", ["+5", ".5", "5.", "05", "1E5", "NaN", "-0", "1e999"])
def test_numbers_that_json_has_not_do_not_change_others(tmp_path, number):
    numbers = {"a": "0.1", "b": number, "c": "3", "d": "-0.0"}
    found = said(drain(source(tmp_path, written([history(7, numbers)]))))
    assert {key: steps[7] for key, steps in found.items()} == {
        "a": ["0.1"], "b": [repr(float(number))], "c": ["3.0"], "d": ["-0.0"],
    }  # fmt: skip


def test_system_figures_keep_their_keys_beside_metrics_of_the_same_names(tmp_path):
    records = [history(1, {"cpu": "1"}), stats(100.0, {"cpu": "50"}), history(2, {"cpu": "2"})]
    found = said(drain_all(source(tmp_path, written(records))))
    assert found == {"cpu": {1: ["1.0"], 2: ["2.0"]}, "system/cpu": {1: ["50.0"]}}


def test_a_metric_and_others_within_its_name_are_all_kept(tmp_path):
    numbers = {"a": "true", ("a", "b"): "2", ("c", "d"): "3", "c": "true"}
    (rows,) = drain(source(tmp_path, written([history(7, numbers)])))
    found = {key: column[0] for key, column in zip(rows.keys, rows.columns, strict=True)}
    assert found == {"a": 1.0, "a.b": 2.0, "c.d": 3.0, "c": 1.0}


def test_items_of_any_length_and_order_are_one_table(tmp_path):
    names = ["k" * length for length in (1, 99, 100, 101, 126, 127, 128, 300)]
    records = []
    for step in range(20):
        random.Random(step).shuffle(names)
        records.append(
            history(step, {name: f"{step + len(name) / 7:.{60 + step}f}" for name in names})
        )
    (rows,) = drain(source(tmp_path, written(records)))
    assert set(rows.keys) == set(names)
    for key, column in zip(rows.keys, rows.columns, strict=True):
        assert list(column) == [float(f"{step + len(key) / 7:.70f}") for step in range(20)]


def test_objects_with_a_type_are_no_metrics_but_histograms_are(tmp_path):
    numbers = {
        ("h", "_type"): '"histogram"', ("h", "values"): "[2,2]", ("h", "bins"): "[0,1,3]",
        ("p", "_type"): '"histogram"', ("p", "values"): "[2,2]",
        ("p", "packedBins", "min"): "0", ("p", "packedBins", "size"): "1", ("p", "packedBins", "count"): "2",
        ("broken", "_type"): '"histogram"', ("broken", "values"): "[2,2]", ("broken", "bins"): "7",
        ("picture", "_type"): '"image-file"', ("picture", "size"): "512", ("picture", "boxes", "n"): "3",
        "whole": '{"_type": "table-file", "nrows": 5}', ("deep", "in", "_type"): '"x"', ("deep", "in", "n"): "1",
        ("deep", "n"): "2",
    }  # fmt: skip
    records = drain(source(tmp_path, written([history(3, numbers)])))
    assert [record.reason for record in records if isinstance(record, Unreadable)] == [
        "broken: a histogram without bounds or counts"
    ]
    assert [record.key for record in records if isinstance(record, Histogram)] == ["h", "p"]
    found = said(records)
    assert {key: steps[3] for key, steps in found.items()} == {
        "h/p05": ["0.1"], "h/p25": ["0.5"], "h/p50": ["1.0"], "h/p75": ["2.0"], "h/p95": ["2.8"],
        "p/p05": ["0.1"], "p/p25": ["0.5"], "p/p50": ["1.0"], "p/p75": ["1.5"], "p/p95": ["1.9"],
        "deep.n": ["2.0"],
    }  # fmt: skip


def test_quantiles_of_odd_histograms():
    assert (
        quantiles((), ())
        == quantiles((0, 1), (0,))
        == quantiles((0, 1), (-1,))
        == quantiles((0,), (1,))
        == {}
    )
    assert quantiles((0, 1, 2, 3), (0, 4, 0)) == {
        "p05": 1.05,
        "p25": 1.25,
        "p50": 1.5,
        "p75": 1.75,
        "p95": 1.95,
    }


def test_the_trainers_step_is_the_step(tmp_path):
    own = written([history(5, {"a": "1"}), history(6, {"a": "2"})])
    assert said(drain(source(tmp_path, own))) == {"a": {5: ["1.0"], 6: ["2.0"]}}
    trl = [
        history(0, {"train/loss": "1", "train/global_step": "10"}),
        history(1, {"eval/loss": "2", "train/global_step": "10"}),
        history(2, {"extra": "3"}),
        history(3, {"train/loss": "4", "train/global_step": "20"}),
    ]
    found = said(drain(source(tmp_path, written(trl))))
    assert found["train/loss"] == {10: ["1.0"], 20: ["4.0"]}
    assert found["eval/loss"] == {10: ["2.0"]}
    assert found["extra"] == {10: ["3.0"]}
    assert found["train/global_step"][20] == ["20.0"]


def test_several_calls_that_are_timed_within_a_step_are_averaged(tmp_path):
    """TRL logs how long a function took at each call."""
    calls = [history(at, {"profiling/generate": number}) for at, number in enumerate("12", 1)]
    step = history(3, {"train/loss": "4", "train/global_step": "1"})
    path = tmp_path / "run-x.wandb"
    path.write_bytes(written([history(0, {"train/global_step": "1"}), *calls, step]))
    run = read_run(path)
    assert values(run, "profiling/generate") == {1: 1.5}
    assert run.sources[str(path)].status.note is None


def test_system_figures_stand_at_the_step_reached_and_are_no_progress(tmp_path):
    records = [
        stats(100.5, {"gpu.0.gpu": "10.0", "cpu": "1"}),
        history(4, {"a": "1"}),
        stats(115.5, {"cpu": "2", "gpu.0.gpu": "50.0"}),
        stats(130.5, {"gpu.0.gpu": "70.0", "cpu": "3"}),
    ]
    found = drain_all(source(tmp_path, written(records)))
    assert [(rows.progress, rows.mean, list(rows.times)) for rows in found] == [
        (False, True, [100.5, 115.5, 130.5]),
        (True, False, []),
    ]
    run = read_run(tmp_path)
    assert values(run, "system/gpu.0.gpu") == {0: 10.0, 4: 60.0}
    assert run.step == 4
    path = tmp_path / "young" / "run-y.wandb"
    path.parent.mkdir()
    path.write_bytes(written(records[:1]))
    assert read_run(path.parent).step is None


def test_who_the_run_is_and_what_it_was_set_to(tmp_path):
    config = field(1, field(1, "_wandb") + field(16, "{}")) + item(
        1, "actor", '{"lr": 1e-06, "x": [1, 2]}'
    )
    identity = {
        1: "abc",
        3: "proj",
        6: "grp",
        7: "train",
        8: "nice \x1b[31mname",
        12: "sw",
        13: "host-1",
    }
    run = b"".join(field(number, text) for number, text in identity.items())
    run += field(4, config) + field(10, "a") + field(10, "b") + field(17, field(1, 1_700_000_000))
    late = item(1, ("trainer", "n"), "8") + item(1, "odd", "{broken")
    records = drain(
        source(tmp_path, written([field(17, run), field(5, late), field(26, field(6, "main.py"))]))
    )
    found = [record.values for record in records if isinstance(record, Settings)]
    assert found == [
        {"actor.lr": 1e-6, "actor.x": "[1, 2]"},
        {
            "wandb.id": "abc", "wandb.project": "proj", "wandb.group": "grp", "wandb.job_type": "train",
            "wandb.name": "nice name", "wandb.sweep": "sw", "wandb.host": "host-1",
            "wandb.start_time": "2023-11-14T22:13:20+00:00", "wandb.tags": "a, b",
        },
        {"trainer.n": 8, "odd": None},
        {"wandb.program": "main.py"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "kind", "how"),
    [(0, EventKind.EXITED, State.FINISHED), (-9, EventKind.FATAL, State.CRASHED)],
)
def test_the_exit_code_tells_how_it_ended(tmp_path, code, kind, how):
    exit_record = field(18, (field(1, code) if code else b"") + field(2, 60))
    found = drain(source(tmp_path, written([history(3, {"a": "1"}), exit_record])))
    assert found[-1] == Event(kind, f"W&B: the run exited with code {code}", 2, bare=code != 0)
    run = read_run(tmp_path)
    assert state(run, run.last_record or 0.0) is how


def test_configuration_and_metadata_beside_it_say_the_same(tmp_path):
    (tmp_path / "files").mkdir()
    config = field(1, field(1, "lr") + field(16, "1e-06")) + item(1, "a", '{"value": 3}')
    data = written(
        [field(17, field(1, "x") + field(13, "h") + field(4, config)), history(1, {"l": "1"})]
    )
    (tmp_path / "run-x.wandb").write_bytes(data)
    (tmp_path / "files" / "config.yaml").write_text(
        "wandb_version: 1\n_wandb:\n  desc: null\n  value: {a: 1}\nlr:\n  value: 1e-06\na:\n  value:\n    value: 3\n"
    )
    (tmp_path / "files" / "wandb-metadata.json").write_text(
        '{"host": "h", "os": "Linux", "git": {"commit": "c0ffee"}}'
    )
    (tmp_path / "files" / "wandb-summary.json").write_text('{"l": 5, "_step": 900}')
    run = read_run(tmp_path)
    assert set(run.settings) == {"wandb.id", "wandb.host", "lr", "a.value", "wandb.git.commit"}
    assert values(run, "l") == {1: 1.0}


# -- damage ----------------------------------------------------------------------------------------


STEPS = 1200


def many(count: int = STEPS) -> list[bytes]:
    """Return records of some blocks: the value of each metric is its step, so that a wrong step
    would show.
    """
    records = []
    for step in range(count):
        records.append(history(step, {"a": str(step), "b": f"{step}.0", "_timestamp": "1.5"}))
        records.append(stats(step, {"cpu": str(step), "gpu.0.gpu": str(step)}))
        if step % 400 == 7:
            records.append(history(step, {"long": str(step), "text": json.dumps("x" * 50_000)}))
    return records


MANY = written(many())


def test_a_record_may_span_blocks(tmp_path):
    assert len(MANY) > 8 * wandb.BLOCK
    found = said(drain(source(tmp_path, MANY)))
    assert found["a"] == {step: [f"{step}.0"] for step in range(STEPS)}
    assert found["long"] == {step: [f"{step}.0"] for step in range(7, STEPS, 400)}


@given(cuts=st.lists(st.integers(0, 10**6), max_size=12), damage=st.integers(0, 1))
@settings(max_examples=examples(0.6), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_cut_says_the_same(tmp_path, cuts, damage):
    data = bytearray(written(many(30)))
    data[100] ^= damage
    path = tmp_path / "run-x.wandb"
    whole, _ = feed_in_pieces(path, wandb, data, [])
    pieces, records = feed_in_pieces(path, wandb, data, cuts)
    assert len([record for record in records if isinstance(record, Unreadable)]) == bool(damage)
    assert {"a", "system/cpu"} <= set(whole.keys)
    assert {key: values(pieces, key) for key in pieces.keys} == {
        key: values(whole, key) for key in whole.keys
    }


@given(stop=st.integers(0, len(MANY)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_torn_log_says_what_came_before(tmp_path, stop):
    records = drain(source(tmp_path, MANY[:stop]))
    assert not [record for record in records if isinstance(record, Unreadable)]
    steps = list(said(records).get("a", {}))
    assert steps == list(range(len(steps)))


@given(
    places=st.lists(
        st.tuples(st.integers(0, len(MANY) - 1), st.integers(1, 255)), min_size=1, max_size=6
    )
)
@settings(max_examples=examples(0.8), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damage_costs_records_but_never_changes_one(tmp_path, places):
    data = bytearray(MANY)
    for place, flip in places:
        data[place] ^= flip
    records = drain_all(source(tmp_path, bytes(data)))
    for key, steps in said(records).items():
        for step, found in steps.items():
            assert set(found) == {f"{step}.0"}, key
    kept = said(records).get("a", {})
    assert len(kept) >= STEPS - 300 * len(places), "the next block is read again"
    reported = any(isinstance(record, Unreadable) for record in records)
    last = len(MANY) - len(MANY) % wandb.BLOCK
    assert reported or len(kept) == STEPS or any(place >= last for place, _ in places), (
        "what is lost is reported"
    )


def test_what_is_damaged_is_reported_with_its_place(tmp_path):
    data = bytearray(MANY)
    data[wandb.BLOCK + 100] ^= 1
    data[5 * wandb.BLOCK : 6 * wandb.BLOCK] = bytes(wandb.BLOCK)
    reported = [
        record for record in drain(source(tmp_path, bytes(data))) if isinstance(record, Unreadable)
    ]
    assert [record.reason.split(" at ")[0] for record in reported] == [
        "a damaged chunk",
        "a hole of zeros",
    ]
    assert reported[0].reason.endswith(f"at byte {wandb.BLOCK:,}")


def test_a_message_that_is_none_is_reported_and_costs_nothing_else(tmp_path):
    broken = [b"\xff\xff", field(2, b"\x0a\x7f"), stats(1, {"cpu": "5"})]
    records = drain_all(
        source(tmp_path, written([history(1, {"a": "1"}), *broken, history(2, {"a": "2"})]))
    )
    assert [record.line for record in records if isinstance(record, Unreadable)] == [2, 3]
    assert said(records) == {"a": {1: ["1.0"], 2: ["2.0"]}}, (
        "where the step is not known, nothing is said of it"
    )


@given(data=st.binary(max_size=300), headed=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_survived(tmp_path, data, headed):
    drain(source(tmp_path, (wandb.HEADER if headed else b"") + data))
    drain(
        source(
            tmp_path,
            written([data, field(2, data), field(7, data), field(17, data), field(5, data)]),
        )
    )


def test_values_beyond_all_measure_cost_only_themselves(tmp_path):
    deep = "[" * 1500 + "]" * 1500
    odd = [
        history(2**63, {"a": "1"}),
        history(3, {"train/global_step": "1e300", "b": "1"}),
        history(4, {"train/global_step": "NaN", "_step": "Infinity", "c": "9" * 5000}),
        history(
            5,
            {
                ("h", "_type"): '"histogram"',
                ("h", "values"): "[1e999, 1]",
                ("h", "bins"): "[0, 1, 1e999]",
            },
        ),
        history(
            6,
            {
                ("p", "_type"): '"histogram"',
                ("p", "values"): "[1]",
                "p": '{"packedBins": {"count": 1e12}}',
            },
        ),
        history(7, {("n",) * 2000: "1", "o": '{"a":' * 900 + "1" + "}" * 900}),
        field(5, item(1, "deep", deep) + item(1, "objects", '{"a":' * 1000 + "1" + "}" * 1000)),
        field(17, field(17, field(1, 2**63 - 1))),
        history(8, {"z": "1"}),
    ]
    found = said(drain_all(source(tmp_path, written(odd))))
    assert found["z"] == {8: ["1.0"]}
    assert found["b"] == {3: ["1.0"]}
    assert found["c"] == {4: ["inf"]}
    assert "a" not in found


def test_a_young_log_is_recognised_and_waited_for(tmp_path):
    path = tmp_path / "run-x.wandb"
    assert wandb.matches(path, b"")
    assert wandb.matches(path, MANY[:100])
    assert not wandb.matches(path, b":W&C\xe1\xbe\0")
    assert not wandb.matches(tmp_path / "x.log", MANY[:100])


# -- what others wrote -----------------------------------------------------------------------------

SCRIPT = """
import math, sys
import numpy as np
import wandb
config = {"actor": {"lr": 1e-6, "x": [1, 2]}, "n": 5, "nan": math.nan, "s": "h\u00e9"}
run = wandb.init(project="p", name="n", group="g", job_type="j", tags=["a", "b"], dir=sys.argv[1], mode="offline",
                 config=config, settings=wandb.Settings(x_stats_sampling_interval=0.1, silent=True))
random = np.random.default_rng(0)
for i in range(30):
    data = {"loss": 0.5 / (i + 1), "nan": math.nan, "inf": math.inf, "low": -math.inf, "nested": {"a": {"b": i}},
            "flag": bool(i % 2), "none": None, "txt": "abc", "np": np.float32(0.1), "big": 10**20, "list": [1, 2],
            "tiny": 5e-324, "zero": -0.0, "third": 1 / 3, "train/x.y": 3, "val-core/a b/acc/mean@1": 1e-7,
            "h": wandb.Histogram(random.standard_normal(1000)),
            "h2": wandb.Histogram(np_histogram=([1, 2, 3], [0, 0.5, 1, 4]))}
    if i % 10 == 0:
        rows = [[j, f"in {j}", f"out {j}", 0.5, f"in2 {j}", f"out2 {j}", -1.0] for j in range(0, i + 1, 10)]
        columns = ["step", "input_1", "output_1", "score_1", "input_2", "output_2", "score_2"]
        data["val/generations"] = wandb.Table(columns=columns, data=rows)
        columns = ["step", "prompt", "completion", "accuracy_reward", "advantage"]
        rows = [[str(2 * i), f"p {j}", f"c {i} {j}", 1.0, math.nan] for j in range(3)]
        data["completions"] = wandb.Table(columns=columns, data=rows)
    wandb.log(data, step=i * 2)
run.config.update({"late": {"z": 1}})
wandb.finish(exit_code=3)
"""


def reference(path: Path) -> list[object]:
    """Return the records of a log as the classes that wandb ships read them."""
    proto = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    data, at, part, found = path.read_bytes(), 7, b"", []
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        checksum, length, kind = struct.unpack_from("<IHB", data, at)
        if at + 7 + length > len(data):
            break
        assert zlib.crc32(data[at + 6 : at + 7 + length]) == checksum
        part = (b"" if kind in (1, 2) else part) + data[at + 7 : at + 7 + length]
        if kind in (1, 4):
            found.append(proto.Record.FromString(part))
        at += 7 + length
    return found


def truth(path: Path) -> tuple[dict[str, dict[int, list[str]]], int]:
    """Return all values of the history and the system figures by key and step, and the exit
    code.
    """
    numbers: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    step, code = 0, -1
    for record in reference(path):
        kind = record.WhichOneof("record_type")
        if kind == "exit":
            code = record.exit.exit_code
        elif kind == "history":
            items = {tuple(i.nested_key) or (i.key,): i.value_json for i in record.history.item}
            step = int(items.get(("train/global_step",), items[("_step",)]))
            typed = {path[:-1] for path in items if path[-1] == "_type"}
            for name, text in items.items():
                value = plain(text)
                if value is not None and not name[0].startswith("_") and name[:1] not in typed:
                    numbers[".".join(name)][step].append(repr(value))
        elif kind == "stats":
            for i in record.stats.item:
                numbers[f"system/{i.key}"][step].append(repr(float(i.value_json)))
    return {key: dict(steps) for key, steps in numbers.items()}, code


def plain(text: str) -> float | None:
    value = json.loads(text, parse_int=float)
    return nan if value is None else float(value) if isinstance(value, (float, bool)) else None


@pytest.fixture(scope="module")
def offline(tmp_path_factory):
    """A directory in which wandb has written a run."""
    pytest.importorskip("wandb")
    folder = tmp_path_factory.mktemp("offline")
    home = {
        name: str(folder / "home")
        for name in ("HOME", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR")
    }
    environment = {
        **os.environ,
        **home,
        "WANDB_MODE": "offline",
        "WANDB_SILENT": "true",
        "WANDB_ERROR_REPORTING": "false",
    }
    subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder)], check=True, env=environment, timeout=120
    )
    return folder / "wandb"


def test_what_wandb_itself_writes_is_read_value_for_value(offline):
    (path,) = offline.glob("offline-run-*/*.wandb")
    expected, code = truth(path)
    found = said(drain_all(FileSource(path, wandb)))
    quantile = {key for key in found if key.startswith(("h/", "h2/"))}
    lists = {key for key in found if key.startswith("list/")}
    assert {key: steps for key, steps in found.items() if key not in quantile | lists} == expected
    assert found["list/mean"] == {2 * i: ["1.5"] for i in range(30)}
    assert len(expected["loss"]) == 30
    assert any(key.startswith("system/") for key in expected)
    assert {key.rpartition("/")[2] for key in quantile} == {"p05", "p25", "p50", "p75", "p95"}
    assert found["h2/p50"] == {2 * i: ["1.0"] for i in range(30)}
    middle = [float(value) for (value,) in found["h/p50"].values()]
    assert max(map(abs, middle)) < 0.2
    assert code == 3


def test_a_run_of_wandb_is_found_with_all_it_left(offline):
    run = read_run(offline)
    assert (run.step, state(run, run.last_record or 0.0)) == (58, State.CRASHED)
    assert {key: run.settings[f"wandb.{key}"] for key in ("project", "name", "group", "job_type", "tags")} == {
        "project": "p", "name": "n", "group": "g", "job_type": "j", "tags": "a, b",
    }  # fmt: skip
    assert (run.settings["actor.lr"], run.settings["late.z"], run.settings["s"]) == (1e-6, 1, "hé")
    assert run.unreadable == 0
    validation = {
        step: [s.response for s in run.samples.at(step) if s.validation]
        for step in run.samples.steps
    }
    assert {step: texts for step, texts in validation.items() if texts} == {
        step: [f"out {step}", f"out2 {step}"] for step in (0, 10, 20)
    }
    completions = [s for s in run.samples.at(40) if not s.validation]
    assert [(s.prompt, s.response, s.extras["accuracy_reward"]) for s in completions] == [
        (f"p {j}", f"c 20 {j}", 1.0) for j in range(3)
    ]


@pytest.mark.skipif(not REAL, reason=f"no real logs in {LOGS}: set VERL_TUI_LOGS")
def test_real_runs_are_read_value_for_value():
    for path, count in zip(REAL, (102, 500), strict=True):
        expected, code = truth(path)
        records = drain_all(FileSource(path, wandb))
        assert said(records) == expected
        assert not [record for record in records if isinstance(record, Unreadable)]
        assert [record.kind for record in records if isinstance(record, Event)] == (
            [EventKind.EXITED] if code == 0 else []
        )
        assert len(expected["train/reward"]) == count
    first, second = (read_run(path.parent) for path in REAL)
    assert (first.step, second.step, second.settings["max_steps"]) == (103, 500, 500)
    assert "audio_token_index" in second.settings
    assert not [
        key for key in second.settings if key.endswith(".value") or key.startswith("_wandb")
    ]


# -- tables ----------------------------------------------------------------------------------------


def table(path: Path, columns: list[str], rows: list[list[object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"columns": columns, "data": rows}))
    return path


GENERATIONS = ["step", "input_1", "output_1", "score_1", "input_2", "output_2", "score_2"]


def test_validation_generations_are_taken_once(tmp_path):
    rows = [
        [step, f"in {step}", f"out {step}", 0.5, f"in2 {step}", f"out2 {step}", None]
        for step in (5, 10, 15)
    ]
    folder = tmp_path / "files" / "media" / "table" / "val"
    second = table(folder / "generations_10_bb.table.json", GENERATIONS, rows[:2])
    third = table(folder / "generations_15_aa.table.json", GENERATIONS, rows)
    both = drain(FileSource(second, wandb_tables))
    assert [(s.step, s.prompt, s.response, s.score, s.validation) for s in both] == [
        (5, "in 5", "out 5", 0.5, True), (5, "in2 5", "out2 5", None, True),
        (10, "in 10", "out 10", 0.5, True), (10, "in2 10", "out2 10", None, True),
    ]  # fmt: skip
    assert [s.step for s in drain(FileSource(third, wandb_tables))] == [15, 15]
    assert not drain(FileSource(second, wandb_tables))[0].extras


def test_tables_of_other_trainers(tmp_path):
    columns = ["step", "prompt", "completion", "reward", "length_2"]
    path = table(
        tmp_path / "completions_3_ab.table.json",
        columns,
        [["40", "p", "c", 1, 9], ["40", "p", None, 1, 9]],
    )
    assert wandb_tables.matches(path, path.read_bytes())
    (sample,) = drain(FileSource(path, wandb_tables))
    assert (sample.step, sample.prompt, sample.response, sample.score) == (40, "p", "c", 1.0)
    assert (sample.extras, sample.validation) == ({"length_2": 9}, False)
    path = table(tmp_path / "eval" / "texts_7_ab.table.json", ["question", "answer"], [["q", "a"]])
    (sample,) = drain(FileSource(path, wandb_tables))
    assert (sample.step, sample.prompt, sample.response) == (7, "q", "a")


def test_what_is_no_table_of_samples(tmp_path):
    path = table(tmp_path / "a_1_b.table.json", ["step", "loss"], [[1, 2]])
    assert not wandb_tables.matches(path, path.read_bytes())
    assert not wandb_tables.matches(tmp_path / "x.json", path.read_bytes())
    assert wandb_tables.matches(path, b'{"data": [[1')
    for text in (
        "[1]}",
        "{}",
        '{"columns": 1, "data": 2}',
        '{"columns": ["prompt"], "data": [1, [2, 3], []]}',
        "[" * 9999,
    ):
        path.write_text(text)
        feed = FileSource(path, wandb_tables)
        assert not [r for r in (*drain(feed), *feed.finish()) if isinstance(r, Sample)]


def test_a_table_that_is_written_anew_is_read_once_more(tmp_path):
    path = tmp_path / "texts_7_ab.table.json"
    source = FileSource(path, wandb_tables)
    reported = []
    for answer in ("first", "the second one"):
        table(path, ["question", "answer"], [["q", answer]])
        reported += [one.response for one in drain(source) if isinstance(one, Sample)]
    assert reported == ["first", "the second one"]


@given(cuts=st.lists(st.integers(0, 10**6), max_size=8), stop=st.integers(0, 10**6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_table_is_read_when_it_is_whole(tmp_path, cuts, stop):
    rows = [[{"}": "}"}, "é}", f"out {n}", math.nan] for n in range(20)]
    path = table(tmp_path / "x_9_ab.table.json", ["a", "input", "output", "score"], rows)
    data = path.read_bytes()
    _, whole = feed_in_pieces(path, wandb_tables, data, [])
    assert [sample.response for sample in whole] == [f"out {n}" for n in range(20)]
    assert repr(feed_in_pieces(path, wandb_tables, data, cuts)[1]) == repr(whole)
    assert feed_in_pieces(path, wandb_tables, data[: stop % len(data)], cuts)[1] == []
