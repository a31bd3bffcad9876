"""Records of a JSONL file in one row: the step, what tells most, everything safe to show."""

from __future__ import annotations

import json
import re

import pytest

from verl_tui.rendering.log.line_rows import record_summary, whole_line


def columns(text: str) -> str:
    """Return a row without what makes columns of it."""
    return re.sub(" {2,}", "  ", text)


@pytest.mark.parametrize(
    ("record", "tag", "text"),
    [
        ({"step": 3, "data": {"actor/lr": 1e-6, "critic/score/mean": 0.5}}, "", "step 3  reward 0.5  actor/lr 1e-06"),
        (
            {
                "scope": "ppo",
                "step": 7,
                "timestamp": 1.7e9,
                "policy_loss": -0.1,
                "kl_div": 0.02,
                "loss": None,
            },
            "ppo",
            "step 7  policy KL 0.02  policy loss -0.1  loss nan",
        ),
        ({"step": 2, "rollout_corr": {"rollout_log_ppl": 0.9}}, "", "step 2  log-probability -0.9"),
        ({"prompt": "a\nb", "reward": 1.0, "turns": [1, 2]}, "", 'reward 1  prompt "a b"  turns [1, 2]'),
        ({"step": 1, **{f"m{i}": i for i in range(20)}}, "", None),
        ({}, "", None),
    ],
)  # fmt: skip
def test_a_record_in_a_row(record, tag, text):
    found = record_summary(json.dumps(record))
    if not record:
        assert found is None
        return
    assert found is not None
    assert found.tag == tag
    if text is None:
        assert found.text.endswith("m11 11      +8")
    else:
        assert columns(found.text) == text


def test_what_json_escapes_stays_harmless():
    line = json.dumps(
        {
            "step": 1,
            "te\x1b[2Jxt": "\x1b]0;t\x07a\x00b\u202e\ud800\n" + "y" * 9000,
            "scope": "s\nx\x9b",
        }
    )
    found = record_summary(line)
    assert found is not None
    shown = found.tag + found.text
    assert not set(shown) & set("\x1b\x07\x00\x9b\u202e\n")
    shown.encode()
    assert len(shown) < 300
    pretty = whole_line(line)
    assert not set(pretty) & set("\x1b\x07\x9b\u202e")
    pretty.encode()
    assert pretty.splitlines()[1] == '  "step": 1,'
