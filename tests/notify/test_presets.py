"""Forms of messages as the services document them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from verl_tui.health.finding import Finding, Severity
from verl_tui.notify.destination import Destination
from verl_tui.notify.message import Message, of_finding
from verl_tui.notify.presets import (
    dingtalk_signature,
    feishu_signature,
    refusal,
    request,
)

NOW = 1_599_360_473.4
HOSTILE = Message(
    "finding", NOW, '<!channel> & <at user_id="all"></at>', run="run", finding="kl-high"
)


def body(
    preset: str, message: Message = HOSTILE, **access: str
) -> tuple[str, dict[str, Any]]:
    to = Destination("https://host.example/a/topic%201", "URL", preset, **access)
    found = request(to, message, NOW)
    return found.url, json.loads(found.body)


def test_json_has_the_documented_fields() -> None:
    _, data = body("json")
    assert list(data) == [
        *(
            "version",
            "program",
            "id",
            "time",
            "event",
            "run",
            "run_id",
            "finding",
            "key",
            "severity",
        ),
        *("state", "step", "since_step", "message", "advice", "repeated", "held_back"),
        *("title", "text"),
    ]
    assert data["time"] == "2020-09-06T02:47:53+00:00"
    assert data["title"] == "verl-tui: run: info: kl-high"


def test_slack_calls_nobody() -> None:
    _, data = body("slack")
    assert list(data) == ["text"]
    assert "&lt;!channel&gt; &amp; &lt;at" in data["text"]


def test_feishu_signs_an_empty_text_with_time_and_secret() -> None:
    # echo -n '' | openssl dgst -sha256 -hmac $'1599360473\ndemo' -binary | base64
    signed = {
        "timestamp": "1599360473",
        "sign": "l1N0gAcBjdwBvGm1xMjOF0XSyaLRpR7tuO5dHfhAYc8=",
    }
    assert feishu_signature("demo", NOW) == signed
    _, data = body("feishu", secret="demo")
    assert {"timestamp": data["timestamp"], "sign": data["sign"]} == signed


def test_dingtalk_signs_time_and_secret_with_the_secret() -> None:
    # echo -n $'1599360473400\nSECdemo' | openssl dgst -sha256 -hmac SECdemo -binary | base64
    signed = (
        "timestamp=1599360473400&sign=GZ9Go%2BYYJHs76z6PatpPaxqsh4k01wWL9eQY7DwQsmA%3D"
    )
    assert dingtalk_signature("SECdemo", NOW) == signed
    url, data = body("dingtalk", secret="SECdemo")
    assert url == f"https://host.example/a/topic%201?{signed}"
    assert data["msgtype"] == "text"
    assert data["at"] == {"isAtAll": False}


def test_ntfy_is_sent_to_the_root_and_names_the_topic() -> None:
    long = Message("finding", NOW, "é" * 4000, run="run", severity=Severity.CRITICAL)
    url, data = body("ntfy", long)
    assert url == "https://host.example/a/"
    assert (data["topic"], data["priority"]) == ("topic 1", 5)
    assert len(data["message"].encode()) <= 4096


@pytest.mark.parametrize(
    ("preset", "answer", "why"),
    [
        ("slack", b"ok", None),
        ("json", b"\xff", None),
        ("feishu", b'{"code": 0, "msg": "success"}', None),
        ("dingtalk", b'{"errcode": 0, "errmsg": "ok"}', None),
        ("dingtalk", b"<html>", "answers with something other than JSON"),
        ("feishu", b"[1]", "answers without saying whether it took the message"),
    ],
)
def test_an_answer_is_read(preset: str, answer: bytes, why: str | None) -> None:
    assert refusal(preset, answer) == why


def test_texts_of_logs_are_made_safe_and_keys_are_hidden() -> None:
    token = "hf_" + "a1" * 15
    finding = Finding(
        "crash",
        Severity.CRITICAL,
        f"ValueError: \x1b[31mtoken {token}\nnext",
        evidence=("a sample's text",),
        advice="look",
    )
    message = of_finding(f"run\u202e {token}", finding, NOW)
    assert message.message == "ValueError: token *** next"
    assert message.run == "run\ufffd ***"
    assert "sample" not in message.text
