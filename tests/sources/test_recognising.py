"""Files are known by what they hold, whatever they are called, at little cost; what is not known is
told.
"""

from __future__ import annotations

import os
import socket

import pytest
from file_writing import write_file
from log_reading import read_runs

from verl_tui.sources.discovery import probing
from verl_tui.sources.discovery.finder import Finder
from verl_tui.sources.discovery.passed_over import UNKNOWN, sentences

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


def test_a_first_step_far_behind_samples(tmp_path):
    (tmp_path / "train.log").write_text(PROSE * (1_900_000 // len(PROSE)) + STEPS)
    (run,) = read_runs(tmp_path).values()
    assert run.step == 4


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
@pytest.mark.parametrize("name", ["train.log", "stderr"])
def test_a_failed_start_is_a_run(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert names(tmp_path) == [name]


def test_jobs_of_which_one_failed_at_its_start_are_two_runs(tmp_path):
    (tmp_path / "slurm-17.out").write_text(IMPORT_ERROR)
    (tmp_path / "slurm-18.out").write_text(STEPS)
    assert len(scan(tmp_path).runs) == 2
    for folder, text in (("first", IMPORT_ERROR), ("second", STEPS)):
        write_file(tmp_path / "more" / folder / "train.log", text)
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
    write_file(tmp_path / "data" / "gsm8k.jsonl", '{"text": "a prompt"}\n')
    discovery = scan(tmp_path)
    assert reasons(discovery) == {"vllm.log": UNKNOWN, "events.jsonl": UNKNOWN}
    assert list(sentences(discovery.passed)) == [
        f"{tmp_path}/events.jsonl, {tmp_path}/vllm.log: of no known format",
    ]


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
