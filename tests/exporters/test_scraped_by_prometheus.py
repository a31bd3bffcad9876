"""Debian's Prometheus over what the command serves, with the guide's alerts, and beside it what
RL-Insight writes.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry, Gauge, start_http_server

from verl_tui.exporters.guide import alert_rules, dashboard
from verl_tui.health.guide_settings import load_guide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


pytestmark = [
    pytest.mark.prometheus,
    pytest.mark.skipif(
        shutil.which("prometheus") is None, reason="needs Debian's package prometheus"
    ),
]
PATIENCE = 30.0
"""Seconds that a server may take to start, or to find what is new."""
EACH = "250ms"
"""Between two scrapes, and between two looks at the alerts."""
BOARD = json.loads(dashboard(load_guide()))
QUERIES = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
VERL = {
    "critic/score/mean": 0.5, "actor/ppo_kl": 0.15, "actor/kl_loss": 0.02, "actor/pg_loss": 0.01,
    "critic/vf_loss": 0.2, "actor/entropy": 1.5, "actor/pg_clipfrac": 0.1, "actor/grad_norm": 0.5,
    "response_length/mean": 300.0, "response_length/clip_ratio": 0.05, "perf/throughput": 900.0,
    "rollout_corr/rollout_log_ppl": 1.2, "timing_s/step": 30.0, "timing_s/gen": 3.0, "reward/std": 0.2,
    "val-core/gsm8k/reward/mean@1": 0.4, "training/rollout_probs_diff_mean": 0.001,
    "system/gpu.0.gpu": 90.0, "system/gpu.0.memoryAllocatedBytes": 5e9, "system/gpu_util": 90.0,
}  # fmt: skip


def verl(step: int) -> str:
    data = {**VERL, "training/global_step": step}
    return json.dumps({"step": step, "data": data}) + "\n"


def tutorial(step: int) -> str:
    records = [
        {"scope": "rollout", "reward_mean": 2.5, "reward_std": 0.3, "kl_div": 0.02, "response_length_mean": 500},
        {"scope": "ppo", "policy_loss": -0.2, "value_loss": 0.1, "entropy": 2.0},
        {"scope": "kl", "divergence": 0.05},
        {"scope": "system", "gpu_util": 90.0, "memory_util": 60.0},
    ]  # fmt: skip
    return "".join(json.dumps({"step": step, **record}) + "\n" for record in records)


@contextmanager
def running(command: list[str], **settings: Any) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, **settings
    ) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=PATIENCE)


@contextmanager
def exporting(logs: Path) -> Iterator[str]:
    """Yield the address of the metrics of all logs."""
    words = ["export", "prometheus", str(logs), "--port", "0", "--interval", "0.2"]
    with running([sys.executable, "-m", "verl_tui", *words]) as process:
        assert process.stderr is not None
        addresses = (re.search(r"127\.0\.0\.1:\d+", line) for line in process.stderr)
        yield next(found.group() for found in addresses if found)


@contextmanager
def rl_insight() -> Iterator[str]:
    """Yield the address of an endpoint with all names of RL-Insight's that the dashboard asks
    for.
    """
    registry = CollectorRegistry()
    for name in {
        *re.findall(r"rl_insight_monitor_\w+", " ".join(QUERIES)),
        "rl_insight_monitor_val_core_math_acc",
    }:
        gauge = Gauge(
            name, "a metric", ["project", "experiment_name"], registry=registry
        )
        gauge.labels("math", "grpo").set(0.5)
    server, _ = start_http_server(0, "127.0.0.1", registry)
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def prometheus(directory: Path, *targets: str) -> Iterator[str]:
    """Yield the address of a server that scrapes these and has the guide's alerts."""
    scrape = [{"job_name": "runs", "static_configs": [{"targets": list(targets)}]}]
    settings = {
        "global": {"scrape_interval": EACH, "evaluation_interval": EACH},
        "rule_files": ["rules.yml"],
        "scrape_configs": scrape,
    }
    (directory / "prometheus.yml").write_text(json.dumps(settings), encoding="utf-8")
    (directory / "rules.yml").write_text(alert_rules(load_guide()), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    said = (directory / "said.txt").open("w", encoding="utf-8")
    command = ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data"]
    with (
        said,
        subprocess.Popen(
            [*command, f"--web.listen-address={address}"], cwd=directory, stderr=said
        ) as server,
    ):
        try:
            yield f"http://{address}"
        finally:
            server.terminate()


def asked(address: str, what: str, **query: str) -> Any:
    """Return what the server answers, nothing while it starts."""
    url = f"{address}/api/v1/{what}?{urllib.parse.urlencode(query)}"
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        with error:
            if error.code in (400, 422):
                pytest.fail(f"{query}: {error.read().decode()}")
    except OSError:
        pass
    return {"result": [], "groups": []}


def until(there: Callable[[], Any]) -> Any:
    """Return what there is once there is something."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := there():
            return found
        time.sleep(0.05)
    return None


def answered(address: str, query: str) -> list[float]:
    """Return the numbers of an answer."""
    found = [
        float(one["value"][1]) for one in asked(address, "query", query=query)["result"]
    ]
    return [value for value in found if not math.isnan(value)]


def named(address: str, query: str) -> list[str]:
    """Return the runs in an answer."""
    result = asked(address, "query", query=query)["result"]
    return [one["metric"]["run"] for one in result]


def test_prometheus_scrapes_it_and_all_of_the_dashboard_answers(tmp_path):
    log = tmp_path / "logs" / "gsm8k" / "run.jsonl"
    other = tmp_path / "logs" / "tutorial" / "verl_logs.jsonl"
    for path, line in ((log, verl), (other, tutorial)):
        path.parent.mkdir(parents=True)
        path.write_text("".join(line(step) for step in range(1, 16)), encoding="utf-8")
    with (
        exporting(tmp_path / "logs") as metrics,
        rl_insight() as others,
        prometheus(tmp_path, metrics, others) as server,
    ):
        assert until(lambda: answered(server, "verl_actor_ppo_kl") == [0.15])
        with log.open("a", encoding="utf-8") as file:
            file.write(verl(16) + verl(17))
        assert until(lambda: 17 in answered(server, "verl_training_steps_total"))
        for query in QUERIES:
            assert until(lambda: answered(server, query.replace("$run", ".*"))), query  # noqa: B023 - it is used at once
        runs = BOARD["templating"]["list"][1]["query"]["query"]
        assert {*named(server, runs[len("query_result(") : -1])} == {
            "gsm8k",
            "tutorial",
            "grpo",
        }
        alerts = 'ALERTS{id="kl-high", alertstate="firing"}'
        assert until(lambda: named(server, alerts)) == ["gsm8k"]
        groups = asked(server, "rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        assert len(rules) > 60
        assert {rule["lastError"] for rule in rules if "lastError" in rule} == set()
