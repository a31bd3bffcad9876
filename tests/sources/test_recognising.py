"""Files are known by what they hold, whatever they are called, at little cost; what is not known is
told.
"""

from __future__ import annotations

import gzip
import json
import os
import socket

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_reading import read_runs

from verl_tui.sources.discovery import probing
from verl_tui.sources.discovery.finder import Finder
from verl_tui.sources.discovery.passed_over import NO_LOG, UNKNOWN, UNSURE, sentences

STEP = "step:{} - actor/loss:0.1 - actor/lr:1e-06 - critic/score/mean:0.5 - actor/kl:0.0 - perf/time:1.0 - a/b:1\n"
STEPS = "".join(STEP.format(n) for n in range(1, 5))
PROSE = "Let us simplify the formula, step by step. It is neither this nor that.\n"
IMPORT_ERROR = (
    'Traceback (most recent call last):\n  File "train.py", line 1, in <module>\n    import trl\n'
    "ModuleNotFoundError: No module named 'trl'\n"
)


def scan(*paths):
    return Finder([str(path) for path in paths]).scan()


def names(*paths):
    return sorted(
        file.path.name for run in scan(*paths).runs for file in run.files if file.format
    )


def reasons(discovery):
    return {one.path.rpartition("/")[2]: one.reason for one in discovery.passed}


@pytest.mark.parametrize(
    "name",
    [
        "notes.md",
        "a.txt",
        "job.out",
        "console",
        "x.weird",
        "r.2024",
        "log.v2.final",
        "job.path",
        "run.lower",
    ],
)
def test_a_console_is_known_whatever_it_is_called(tmp_path, name):
    (tmp_path / name).write_text(PROSE * 20 + STEPS)
    assert names(tmp_path) == [name]


@pytest.mark.parametrize("name", ["README.md", "docs.rst", "README", "index.weird"])
def test_a_document_that_quotes_a_step_is_no_log(tmp_path, name):
    (tmp_path / name).write_text(
        "# verl.trainer\n\nIt prints, with (TaskRunner pid=1):\n\n    " + STEP.format(1)
    )
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "name",
    ["model.safetensors", "train.py", "run.sh", "a.png", "b.yaml", "w.bin", "a.tar"],
)
def test_what_is_called_as_something_else_is_never_opened(tmp_path, monkeypatch, name):
    (tmp_path / name).write_text(STEPS)
    monkeypatch.setattr(probing, "head", lambda *_: pytest.fail("opened"))
    assert scan(tmp_path).passed == ()


@pytest.mark.parametrize("size", [600_000, 2_000_000, 3_900_000])
def test_a_first_step_far_behind_samples(tmp_path, size):
    (tmp_path / "train.log").write_text(PROSE * (size // len(PROSE)) + STEPS)
    (run,) = read_runs(tmp_path).values()
    assert run.step == 4


def test_a_first_step_that_comes_while_watching(tmp_path):
    log = tmp_path / "train.log"
    log.write_text(PROSE * 5_000)
    finder = Finder([str(tmp_path)])
    assert finder.scan().runs == ()
    for text in (PROSE * 5_000, PROSE * 80_000, STEPS):
        with log.open("a") as file:
            file.write(text)
        found = finder.scan()
    assert found.runs == (), (
        "a file of which so much was looked at is looked at again only when it is twice as large"
    )
    with log.open("a") as file:
        file.write((PROSE * 200 + STEPS) * 500)
    assert len(finder.scan().runs) == 1


@pytest.mark.parametrize("before", ["", "INFO trainer starts\n"])
def test_a_first_record_longer_than_what_is_looked_at_first(tmp_path, before):
    record = {
        "step": 1,
        "data": {f"group/a rather long name of a metric {n}": n for n in range(5000)},
    }
    data = f"{before}{json.dumps(record)}\n"
    log = tmp_path / "metrics.jsonl"
    finder = Finder([str(tmp_path)])
    for end in (len(data) - 9, len(data)):
        log.write_text(data[:end])
        runs = finder.scan().runs
        assert len(runs) == (end == len(data))
    assert [file.format.name for file in runs[0].files] == ["verl file logger"]
    assert len(read_runs(log).popitem()[1].keys) == 5000


def test_little_is_read_of_a_large_text_and_nothing_twice(tmp_path, monkeypatch):
    (tmp_path / "book.txt").write_text(PROSE * 150_000)
    read = []
    real = os.pread

    def counted(descriptor, size, at):
        data = real(descriptor, size, at)
        read.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", counted)
    finder = Finder([str(tmp_path)])
    finder.scan()
    assert 0 < sum(read) < 1.5 * probing.DEEPEST
    read.clear()
    finder.scan()
    assert read == []


def test_many_files_of_an_unknown_kind_are_not_all_opened(tmp_path):
    for n in range(probing.MOST_ODD + 50):
        (tmp_path / f"blob{n}.x").write_text("nothing")
    (tmp_path / "train.log").write_text(STEPS)
    discovery = scan(tmp_path)
    assert [file.path.name for run in discovery.runs for file in run.files] == [
        "train.log"
    ]
    assert reasons(discovery) == {
        tmp_path.name: f"only {probing.MOST_ODD} of its files of unknown kinds were looked at"
    }


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(
    "text",
    ["\0" * 5000 + STEPS, "\0" * 300_000 + STEPS, "(pid=1) \0 words\n" + STEPS, STEPS + "\0" * 500 + STEPS],
    ids=["emptied beneath its writer", "emptied late", "one within", "a gap"],
)  # fmt: skip
def test_a_console_with_zero_bytes_is_a_console(tmp_path, text, named):
    log = tmp_path / "train.log"
    log.write_text(text)
    assert names(log if named else tmp_path) == ["train.log"]


def test_what_is_no_text_is_no_console_though_it_holds_a_step(tmp_path):
    (tmp_path / "train.log").write_bytes(b"\x03\0\x0e\0" * 2000 + STEPS.encode())
    (tmp_path / "archive.log").write_bytes(
        b"train.log" + b"\0" * 248 + b"ustar\0" + STEPS.encode()
    )
    assert names(tmp_path) == []


def test_what_a_model_wrote_behind_the_first_lines_may_be_any_bytes(tmp_path):
    (tmp_path / "a.log").write_bytes(
        STEPS.encode() * 3 + b"\x00\x01\x7f \x9b31m\n" + STEPS.encode()
    )
    assert names(tmp_path) == ["a.log"]


def test_a_binary_file_is_refused_at_its_first_bytes(tmp_path, monkeypatch):
    (tmp_path / "core").write_bytes(bytes(range(256)) * 4096)
    asked = []
    real = probing.head
    monkeypatch.setattr(
        probing, "head", lambda path, limit: asked.append(limit) or real(path, limit)
    )
    finder = Finder([str(tmp_path)])
    finder.scan()
    with (tmp_path / "core").open("ab") as file:
        file.write(b"more")
    finder.scan()
    assert len(asked) == 1
    assert asked[0] <= 4096


# -- no step yet -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        " 60%|██████    | 6/10 [00:06<00:04,  1.00s/it]",
        "loading\n  0%|          | 0/300 [00:00<?, ?it/s]\r  0%|          | 1/300 [00:01<05:00,  1.0s/it]",
        "Training:  60%|██████    | 6/10 [00:06<00:04,  1.00s/it]",
        "6/10 [00:06<00:04,  1.00s/it]",
        "[INFO] Epoch 1/3:  60%|██████    | 6/10 [00:06<00:04,  1.00s/it]",
    ],
)
def test_a_log_with_only_a_bar_is_a_run(tmp_path, text):
    (tmp_path / "train.log").write_text(text)
    (run,) = read_runs(tmp_path).values()
    assert run.name == tmp_path.name


@pytest.mark.parametrize(
    "name", ["Map", "Loading checkpoint shards", "Downloading data", "Tokenizing train"]
)
def test_a_bar_of_something_else_is_none(tmp_path, name):
    (tmp_path / "prep.log").write_text(
        f"{name}:  60%|██████    | 6/10 [00:06<00:04,  1.00s/it]\n"
    )
    assert names(tmp_path) == []


FAILED = {
    "import": IMPORT_ERROR,
    "argument": "usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: --lrr 1\n",
    "hydra": "Could not override 'trainer.foo'.\nTo append to your config use +trainer.foo=1\n"
    "Key 'foo' is not in struct\n    full_key: trainer.foo\n    object_type=dict\n\n"
    "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n",
    "file": "python: can't open file '/home/me/train_grpo.py': [Errno 2] No such file or directory\n",
    "command": "run_train.sh: line 3: accelerate: command not found\n",
    "module": "/usr/bin/python: No module named verl.trainer.main_ppo\n",
}


@pytest.mark.parametrize("text", FAILED.values(), ids=FAILED)
@pytest.mark.parametrize(
    "name", ["train.log", "nohup.out", "slurm-17.out", "stderr", "job.txt"]
)
def test_a_failed_start_is_a_run(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert names(tmp_path) == [name]


def test_the_log_of_another_program_that_failed_is_no_run(tmp_path):
    text = "Traceback (most recent call last):\n  File \"/srv/shop/app.py\", line 1\nKeyError: 'cart'\n"
    (tmp_path / "shop.log").write_text(text)
    discovery = scan(tmp_path)
    assert discovery.runs == ()
    assert reasons(discovery) == {"shop.log": UNKNOWN}


def test_beside_a_better_log_an_error_is_no_run_of_its_own(tmp_path):
    (tmp_path / "train.log").write_text(STEPS)
    (tmp_path / "reward_server.log").write_text(IMPORT_ERROR)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "prepare.log").write_text(IMPORT_ERROR)
    discovery = scan(tmp_path)
    assert [[file.path.name for file in run.files] for run in discovery.runs] == [
        ["train.log"]
    ]
    assert reasons(discovery) == {"reward_server.log": UNSURE, "prepare.log": UNSURE}


def test_jobs_of_which_one_failed_at_its_start_are_two_runs(tmp_path):
    (tmp_path / "slurm-17.out").write_text(IMPORT_ERROR)
    (tmp_path / "slurm-18.out").write_text(STEPS)
    assert len(scan(tmp_path).runs) == 2
    for folder, text in (("first", IMPORT_ERROR), ("second", STEPS)):
        (tmp_path / "more" / folder).mkdir(parents=True)
        (tmp_path / "more" / folder / "train.log").write_text(text)
    assert len(scan(tmp_path / "more").runs) == 2


# -- what is passed over ---------------------------------------------------------------------------


def test_logs_that_nobody_understands_are_reported_also_beside_a_run(tmp_path):
    (tmp_path / "train.log").write_text(STEPS)
    for name, text in {
        "vllm.log": "INFO engine up\n",
        "events.jsonl": '{"what": "else"}\n',
        "empty.log": "",
        "notes.md": "hello",
        "config.json": "{}",
        "a.py": "import verl",
        "vocab.txt": "a b c",
        "train.jsonl": '{"text": "a prompt"}\n',
    }.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "gsm8k.jsonl").write_text('{"text": "a prompt"}\n')
    discovery = scan(tmp_path)
    assert reasons(discovery) == {"vllm.log": UNKNOWN, "events.jsonl": UNKNOWN}
    assert list(sentences(discovery.passed)) == [
        f"{tmp_path}/events.jsonl, {tmp_path}/vllm.log: of no known format",
    ]


def test_folders_beside_runs_that_look_like_one_are_reported(tmp_path):
    for run in ("run_1", "run_2"):
        (tmp_path / run).mkdir()
        (tmp_path / run / "train.log").write_text(STEPS)
    (tmp_path / "run_3" / "checkpoints" / "global_step_5").mkdir(parents=True)
    (tmp_path / "run_4").mkdir()
    (tmp_path / "lost" / "out" / "checkpoint-10").mkdir(parents=True)
    for other in ("src", "docs", "run_1/plots", "run_1/run_5"):
        (tmp_path / other).mkdir()
    assert reasons(scan(tmp_path)) == {"run_3": NO_LOG, "run_4": NO_LOG, "lost": NO_LOG}


def test_what_is_no_file_and_odd_names_are_no_obstacle(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "train.log")
    os.mkfifo(tmp_path / "pipe.md")
    with socket.socket(socket.AF_UNIX) as listening:
        os.chdir(tmp_path)
        listening.bind("s.log")
    (tmp_path / "null.log").symlink_to("/dev/zero")
    odd = os.fsencode(tmp_path) + b"/a\nb\x1b[31m\xff\xfe.log"
    with open(odd, "wb") as file:  # noqa: PTH123 - no text
        file.write(b"nothing to see\n")
    (tmp_path / "exp.log").write_text(STEPS)
    discovery = scan(tmp_path)
    assert [file.path.name for run in discovery.runs for file in run.files] == [
        "exp.log"
    ]
    (said,) = sentences(discovery.passed)
    assert said == f"{tmp_path}/a b\ufffd\ufffd.log: of no known format"


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=400),
    st.sampled_from(["a.log", "b.md", "c", "d.jsonl", "e.log.gz", "f.log.1", "g.csv"]),
)
def test_whatever_a_file_holds_it_is_looked_at_without_an_error(tmp_path, data, name):
    for old in tmp_path.iterdir():
        old.unlink()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    discovery = scan(tmp_path)
    assert not any("could not be looked at" in one.reason for one in discovery.passed)
