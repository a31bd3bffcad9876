"""`export prometheus` as a user runs it, in this process: what it writes, and what it refuses."""

from __future__ import annotations

import socket
import sys
from contextlib import closing

import pytest
from command_line import complaint
from file_writing import write_file

from verl_tui.cli import main


@pytest.fixture
def log(tmp_path, monkeypatch):
    """A run of two steps, and no login from outside."""
    monkeypatch.delenv("VERL_TUI_LOGIN", raising=False)
    path = tmp_path / "run.jsonl"
    form = '{{"step": {}, "data": {{"critic/score/mean": {}}}}}\n'
    path.write_text(form.format(1, 0.25) + form.format(2, 0.5), encoding="utf-8")
    return str(path)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the sentence of a command that makes no sense."""
    assert main(["export", "prometheus", *words]) == 64
    return complaint(capsys)


def test_a_file_is_written_whole_and_once(log, tmp_path):
    out = tmp_path / "verl.prom"
    assert main(["export", "prometheus", log, "--textfile", str(out)]) == 0
    assert 'verl_average_reward{run="run"} 0.5\n' in out.read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.glob("*.prom*")] == ["verl.prom"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--bind", "nowhere.invalid"], "no such address"),
        (["--port", "70000"], "not a port"),
        (["--textfile", "verl.txt"], ".prom"),
        (["--textfile", "verl.prom", "--port", "1"], "--port goes without --textfile"),
        (["--textfile", "verl.prom", "--tls-cert", "a", "--tls-key", "b"], "--tls-cert goes without --textfile"),
        (["--follow"], "--textfile"),
        (["--tls-cert", "cert.pem"], "--tls-cert goes with --tls-key"),
        (["--tls-cert", "nowhere/cert.pem", "--tls-key", "nowhere/key.pem"], "nowhere/cert.pem: no such file"),
        (["--login-file", "nowhere/login"], "nowhere/login: no such file"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_its_reason(log, words, why, capsys):
    assert why in refused(capsys, log, *words)


@pytest.mark.parametrize(
    "text", ["", "ann", ":sesame", "\ufeff:sesame", "ann:", "ann:se\nsame"]
)
def test_a_login_needs_a_user_and_a_password(log, text, tmp_path, capsys):
    file = write_file(tmp_path / "login", text)
    said = refused(capsys, log, "--login-file", str(file))
    assert "user:password" in said
    assert "same" not in said


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o604])
def test_a_login_that_others_may_read_is_said(log, mode, tmp_path, capsys):
    file = write_file(tmp_path / "login", "ann:sesame")
    file.chmod(mode)
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        words = ("--login-file", str(file), "--port", str(taken.getsockname()[1]))
        assert main(["export", "prometheus", log, *words]) == 73
    said = capsys.readouterr().err
    assert (f"chmod 600 {file}" in said) is (mode != 0o600)
    assert "sesame" not in said


def test_files_that_are_no_certificate(log, capsys):
    said = refused(capsys, log, "--tls-cert", log, "--tls-key", log)
    assert "not a PEM certificate" in said


def test_nothing_to_export(log, tmp_path, asked):
    out = tmp_path / "verl.prom"
    said = asked("export", "prometheus", tmp_path / "nowhere", "--textfile", out)
    assert said.code == 3
    assert "nothing to export" in said.err
    assert not out.exists()


def test_without_the_library_the_sentence_says_how_to_get_it(log, capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "verl_tui.exporters.prometheus", raising=False)
    monkeypatch.setitem(sys.modules, "prometheus_client.core", None)
    said = refused(capsys, log, "--textfile", "verl.prom")
    assert "pip install 'verl-tui[prometheus]'" in said
