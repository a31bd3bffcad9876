"""Versions as logs state them; figures are no versions."""

from __future__ import annotations

import pytest
from log_reading import read_run

from verl_tui.bundle.versions import installed, stated_versions


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("vllm==0.8.5.post1", [("vllm", "0.8.5.post1")]),
        ('"transformers_version": "4.51.1",', [("transformers", "4.51.1")]),
        ("wandb: Tracking run with wandb version 0.19.9", [("wandb", "0.19.9")]),
        ("Initializing a V1 LLM engine (v0.8.4) with config", [("vllm", "0.8.4")]),
        ("PyTorch: 2.6.0+cu124", [("torch", "2.6.0+cu124")]),
        ("vLLM API server version 0.10.1", [("vllm", "0.10.1")]),
        ("flash_attn 2.7.4, ", [("flash-attn", "2.7.4")]),
        ('File "/opt/conda/lib/python3.10/site-packages/a.py"', [("python", "3.10")]),
        ("ray: 0.5, torch 2.6 GB, vllm: 12.5%, deepspeed_time=1.2, perf/torch: 0.1", []),
        ("my-torch 1.2.3/4 x/vllm 1.2.3", []),
    ],
)  # fmt: skip
def test_versions_in_a_log(tmp_path, text, found):
    (tmp_path / "a.jsonl").write_text('{"step": 1, "data": {"loss": 1.0}}\n')
    versions = stated_versions(read_run(tmp_path / "a.jsonl"), {"logs/train.log": text})
    assert [(one.package, one.version) for one in versions] == found
    assert {one.origin for one in versions} <= {"train.log"}


def test_installed_versions_are_named_apart():
    here = installed()
    assert set(here) == {"verl-tui", "python", "platform", "packages"}
    assert "textual" in here["packages"]
