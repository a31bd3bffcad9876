"""A real Prometheus for tests, on loopback and a free port, with a past that is put in before it
starts.
"""

from __future__ import annotations

import http.client
import math
import shutil
import socket
import subprocess
import time
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

SCRAPE = 15
"""Seconds between two scrapes, as the configuration says them."""
MISSING = "needs the programs prometheus and promtool, which Debian's package prometheus brings"
Sample = tuple[str, dict[str, str], float, float]
"""Name, labels, value, and time in seconds since the epoch."""

needs_prometheus = pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("promtool")), reason=MISSING
)


def openmetrics(samples: Iterable[Sample]) -> str:
    """Return samples as OpenMetrics with times, all of a metric together as it demands."""
    by_name: dict[str, list[str]] = defaultdict(list)
    for name, labels, value, at in samples:
        words = ",".join(
            f'{key}="{_escaped(text)}"' for key, text in sorted(labels.items())
        )
        number = "NaN" if math.isnan(value) else repr(value).replace("inf", "Inf")
        by_name[name].append(f"{name}{{{words}}} {number} {at:.3f}\n")
    return (
        "".join(
            f"# TYPE {name} unknown\n{''.join(lines)}"
            for name, lines in by_name.items()
        )
        + "# EOF\n"
    )


@contextmanager
def serving(
    directory: Path,
    past: Iterable[Sample] = (),
    targets: Sequence[str] = (),
    scrape: int = SCRAPE,
) -> Iterator[str]:
    """Run a Prometheus.

    Args:
        directory: For its configuration and data.
        past: What it knows already.
        targets: Host and port of what it scrapes.
        scrape: Seconds between two scrapes.

    Yields:
        Its address.
    """
    data = directory / "data"
    data.mkdir()
    if text := openmetrics(past).removesuffix("# EOF\n"):
        file = directory / "past.om"
        file.write_text(text + "# EOF\n")
        command = [
            "promtool",
            "tsdb",
            "create-blocks-from",
            "openmetrics",
            str(file),
            str(data),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    config = directory / "prometheus.yml"
    listed = ", ".join(f"'{target}'" for target in targets)
    config.write_text(
        f"global: {{scrape_interval: {scrape}s, scrape_timeout: 1s}}\n"
        f"scrape_configs:\n  - job_name: test\n    static_configs: [{{targets: [{listed}]}}]\n"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (directory / "log.txt").open("w")
    server = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={data}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=log,
    )
    try:
        _wait_until_ready(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(20)
        log.close()


def _wait_until_ready(port: int) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/-/ready")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.05)
    raise TimeoutError("prometheus does not become ready")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
