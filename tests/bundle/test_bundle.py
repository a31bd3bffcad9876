"""The command: a real archive, opened and read."""

from __future__ import annotations

import io
import json
import stat
import subprocess
import sys
import textwrap
import zipfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from property_examples import examples

from verl_tui.bundle.contents import Bundle, masked_files, zipped
from verl_tui.cli import main
from verl_tui.config import Config
from verl_tui.monitor import load
from verl_tui.secrets import Mask

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_800_000_000.0
KEY = "hf_" + "aB3" * 11
ALWAYS = [
    "README.txt", "summary.md", "check.txt", "check.json", "settings.json", "versions.json",
    "sources.json", "events.json", "logs/01-train.log.txt", "logs/01-train.log.tracebacks.txt",
    "metrics.csv", "charts.txt", "gpus.json", "processes.json",
]  # fmt: skip


def _log(folder: Path, extra: str = "") -> Path:
    """Write the console of a run that crashed."""
    path = folder / "train.log"
    form = "step:{0} - actor/pg_loss:0.{0} - critic/score/mean:0.{0}\n"
    steps = "".join(map(form.format, range(1, 9)))
    path.write_text(
        f"HF_TOKEN={KEY} python3 -m verl.trainer.main_ppo data.n=8 trainer.nnodes=1\nvllm==0.8.5\n"
        f"{extra}\n{steps}[prompt] private words\n[response] b\n[ground_truth] c\n[score] 1.0\n"
        "Traceback (most recent call last):\n"
        '  File "/home/mallory/train.py", line 3, in <module>\nValueError: bad\n'
    )
    return path


def _read(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_a_bundle_holds_what_a_bug_report_needs(tmp_path, asked):
    log, out = _log(tmp_path), tmp_path / "out.zip"
    said = asked("bundle", log, "-o", out, code=0)
    files = _read(out)
    assert list(files) == ALWAYS
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    for name, text in files.items():
        assert f"{len(text.encode()):,}  {name} " in said.out
    everything = "\n".join(files.values())
    assert not [one for one in (KEY, "mallory", "private words") if one in everything]
    checked = json.loads(files["check.json"])
    assert checked["runs"][0]["state"] == "crashed"
    assert "ValueError: bad" in files["summary.md"]
    assert "vllm 0.8.5" in files["summary.md"]
    assert files["metrics.csv"].startswith("step,actor/pg_loss,critic/score/mean,")
    assert 'File "~/train.py"' in files["logs/01-train.log.tracebacks.txt"]
    assert json.loads(files["settings.json"])["values"]["data.n"] == 8
    assert json.loads(files["sources.json"])[0]["format"] == "verl console"
    assert json.loads(files["processes.json"])["problem"]
    assert "⢀" in files["charts.txt"]


def test_the_same_evidence_gives_the_same_bytes(tmp_path):
    log = _log(tmp_path)

    def made() -> bytes:
        monitor = load([str(log)], Config(), NOW)
        found = Bundle(monitor, next(iter(monitor.runs.values())), NOW)
        return zipped(masked_files(found.files(), Mask({}), found.words))

    assert made() == made()


def test_a_secret_is_hidden_in_every_file_once_one_names_it(tmp_path):
    key, out = "Zq7wXk29Lm4t", tmp_path / "out.zip"
    said = f"JUDGE_TOKEN={key} is sent to http://judge-3.corp.example:8000/v1"
    log = _log(tmp_path, said)
    with log.open("a") as file:
        file.write(f"RuntimeError: 401 for {key} at judge-3.corp.example\n")
    main(["bundle", str(log), "-o", str(out)])
    everything = "\n".join(_read(out).values())
    assert "401 for *** at HOST" in everything
    assert not [one for one in (key, "corp.example") if one in everything]


def test_samples_are_in_it_on_request_only(tmp_path):
    out = tmp_path / "out.zip"
    main(["bundle", str(_log(tmp_path)), "-o", str(out), "--samples"])
    files = _read(out)
    assert json.loads(files["samples.json"])[0]["prompt"] == "private words"
    assert "private words" in files["logs/01-train.log.txt"]


@pytest.mark.parametrize(
    ("rows", "kept"), [((3,), 3), ((8, 7), 15), ((20,), 20), ((30, 5), 20)]
)
def test_the_newest_samples_are_those_of_the_last_dumps_however_few(
    tmp_path, rows, kept
):
    dumps = tmp_path / "run" / "rollouts"
    dumps.mkdir(parents=True)
    (tmp_path / "run" / "m.jsonl").write_text('{"step": 1, "data": {"loss": 2}}\n')
    for step, count in enumerate(rows, 1):
        row = json.dumps({"input": "2+2", "output": "4", "score": 1.0, "step": step})
        (dumps / f"{step}.jsonl").write_text(f"{row}\n" * count)
    out = tmp_path / "out.zip"
    main(["bundle", str(tmp_path / "run"), "-o", str(out), "--samples"])
    assert len(json.loads(_read(out)["samples.json"])) == kept


def test_listing_writes_nothing(tmp_path, asked):
    log = _log(tmp_path)
    assert "summary.md" in asked("bundle", log, "--list", code=0).out
    assert list(tmp_path.iterdir()) == [log]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("answer", "written"), [("y\n", True), ("yes\n", True), ("\n", False), ("", False)]
)
def test_on_a_terminal_it_asks_first(tmp_path, monkeypatch, answer, written):
    out, err = tmp_path / "out.zip", _Terminal()
    monkeypatch.setattr(sys, "stdin", _Terminal(answer))
    monkeypatch.setattr(sys, "stderr", err)
    assert main(["bundle", str(_log(tmp_path)), "-o", str(out)]) == 0
    assert out.exists() is written
    assert "[y/N]" in err.getvalue()


def test_what_cannot_be_done_gets_a_sentence(tmp_path, asked, monkeypatch):
    log, out, there = str(_log(tmp_path)), str(tmp_path / "out.zip"), tmp_path / "x.zip"
    there.write_bytes(b"mine")
    here, other = tmp_path / "here", tmp_path / "other"
    for folder in (here, other):
        folder.mkdir()
        _log(folder)
    monkeypatch.chdir(here)
    cases = [
        ([log], 64, "name the file to make"),
        ([log, "-o", str(tmp_path / "x.tar")], 64, "must end in .zip"),
        (
            [str(here), str(other), "-o", out],
            64,
            "2 runs: here, other; name one with --run",
        ),
        (["-", "-o", out], 64, "-: this command reads no standard input"),
        ([str(tmp_path / "none"), "-o", out], 3, "no run found"),
        ([log, "-o", str(tmp_path / "no" / "x.zip")], 73, "no such file or directory"),
        ([log, "-o", str(there), "--yes"], 73, "exists already"),
    ]
    for words, code, sentence in cases:
        assert sentence in asked("bundle", *words, code=code).err
    assert there.read_bytes() == b"mine"


CONTEXTS = [
    "export WANDB_API_KEY={}", "--hub_token {}", "['--api-key', '{}']", "password: '{}'",
    '{{"hf_token": "{}"}}', "https://bob:{}@host/x", "https://{}@github.com/x", "hf_{}",
    "Authorization: Bearer {}", "?token={}&x=1", "https://hooks.slack.com/services/T0/B0/{}",
    "wandb login {}", "/home/{}/runs", "/mnt/fs/users/{}/x.py", "C:\\Users\\{}\\x",
    "+ray_init.runtime_env.env_vars.MY_SECRET={}", "{{'aws_secret_access_key': '{}'}}",
    'File "/Users/{}/train.py", line 1', "in the environment: {}",
]  # fmt: skip
SECRET = st.from_regex(r"[a-z][A-Z][0-9]{2}[a-zA-Z2-9]{22,30}", fullmatch=True)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=examples(1 / 5),
)
@given(
    secrets=st.tuples(*[SECRET] * len(CONTEXTS)),
    owner=st.sampled_from(["mallory", "wangwei", "jdoe"]),
)
def test_no_secret_and_no_home_survives_in_any_file(tmp_path, secrets, owner):
    folder = tmp_path / "home" / owner
    folder.mkdir(parents=True, exist_ok=True)
    pairs = zip(CONTEXTS, secrets, strict=True)
    lines = "\n".join(context.format(one) for context, one in pairs)
    monitor = load([str(_log(folder, lines))], Config(), NOW)
    (run,) = monitor.runs.values()
    found = Bundle(monitor, run, NOW, samples=True)
    mask, hidden = Mask({"MY_TOKEN": secrets[-1]}), (*secrets, owner, str(tmp_path))
    for file in masked_files(found.files(), mask, found.words):
        text = file.content.decode()
        assert not [one for one in hidden if one in text], file.name


@pytest.fixture
def training(tmp_path):
    """Return the log of a process that goes on writing it."""
    path = tmp_path / "train.log"
    code = """
        import sys, time
        def a_training_loop():
            with open(sys.argv[1], "w") as log:
                for step in range(1, 9):
                    print(f"step:{step} - actor/pg_loss:0.{step} - critic/score/mean:0.5", file=log, flush=True)
                print("ready", flush=True)
                time.sleep(100)
        a_training_loop()
    """
    program = textwrap.dedent(code)
    words = [sys.executable, "-c", program, str(path), "--api_key", "hunter22"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield path
        process.kill()


def test_the_stacks_of_a_running_training_are_in_it(training, capsys):
    out = training.parent / "out.zip"
    assert main(["bundle", str(training), "-o", str(out), "--stacks"]) == 0
    files = _read(out)
    (known,) = json.loads(files["processes.json"])["processes"]
    assert known["command"].endswith("--api_key ***")
    name = f"stacks/{known['pid']}.txt"
    if name not in files:  # a container without the capability
        assert "reading another process needs permission" in capsys.readouterr().err
        pytest.skip("py-spy may not read other processes here")
    assert "a_training_loop" in files[name]
    assert "hunter22" not in files[name]


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("Error: Permission Denied: Try running again with elevated permissions", "SYS_PTRACE"),
        ("Error: Failed to find python version", "Failed to find python version"),
    ],
)  # fmt: skip
def test_without_permission_the_rest_is_done(
    training, monkeypatch, asked, said, sentence
):
    spy = training.parent / "bin" / "py-spy"
    spy.parent.mkdir()
    spy.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    spy.chmod(0o755)
    monkeypatch.setenv("PATH", str(spy.parent), prepend=":")
    out = training.parent / "out.zip"
    assert sentence in asked("bundle", training, "-o", out, "--stacks", code=0).err
    files = _read(out)
    assert sentence in files["README.txt"].replace("\n", " ")
    assert "summary.md" in files
