"""The server of metrics: who is let in, and what it answers before and after there is something to
show.
"""

from __future__ import annotations

import base64
import shutil
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from prometheus_client.core import GaugeMetricFamily

from verl_tui.exporters.endpoint import MetricsServer, encryption, is_loopback
from verl_tui.exporters.prometheus import Exposition

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE = 30.0


def asked(
    address: str, login: str | None = None, context: ssl.SSLContext | None = None
) -> tuple[int, str]:
    """Return status and text of an answer."""
    request = urllib.request.Request(address)
    if login is not None:
        request.add_header(
            "Authorization", "Basic " + base64.b64encode(login.encode()).decode()
        )
    try:
        with urllib.request.urlopen(
            request, timeout=PATIENCE, context=context
        ) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def page(value: float) -> Exposition:
    return Exposition((GaugeMetricFamily("verl_loss", "loss", value=value),))


def test_the_newest_page_is_served_and_before_there_is_one_nothing() -> None:
    with closing(MetricsServer("127.0.0.1", 0)) as endpoint:
        assert asked(endpoint.address)[0] == 503
        endpoint.show(page(1))
        endpoint.show(page(2))
        status, text = asked(endpoint.address)
        assert status == 200
        assert "verl_loss 2.0\n" in text
        assert asked(endpoint.address.removesuffix("/metrics"))[0] == 404


@pytest.mark.parametrize(
    "login", [None, "", "ann", "ann:wrong", "bob:sesame", "ann:sesame2"]
)
def test_without_the_right_login_nobody_sees_anything(login: str | None) -> None:
    with closing(MetricsServer("127.0.0.1", 0, login="ann:sesame")) as endpoint:
        endpoint.show(page(1))
        status, text = asked(endpoint.address, login)
        assert status == 401
        assert "verl_loss" not in text


@pytest.mark.skipif(
    shutil.which("openssl") is None, reason="needs Debian's package openssl"
)
def test_it_speaks_tls(tmp_path: Path) -> None:
    certificate = tmp_path / "cert.pem"
    key = tmp_path / "key.pem"
    made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    files = [
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
    ]
    subprocess.run([*made.split(), *files], check=True, capture_output=True)
    with closing(
        MetricsServer("127.0.0.1", 0, tls=encryption(certificate, key))
    ) as endpoint:
        endpoint.show(page(3))
        assert endpoint.address.startswith("https://")
        with socket.create_connection(
            ("127.0.0.1", int(endpoint.address.split(":")[2].partition("/")[0]))
        ):
            # One that never greets holds up nobody.
            trusting = ssl.create_default_context(cafile=str(certificate))
            assert "verl_loss 3.0" in asked(endpoint.address, context=trusting)[1]
        with pytest.raises(urllib.error.URLError):
            asked(endpoint.address)


def test_a_port_in_use_cannot_be_had() -> None:
    with (
        closing(socket.create_server(("127.0.0.1", 0))) as taken,
        pytest.raises(OSError, match="in use"),
    ):
        MetricsServer("127.0.0.1", taken.getsockname()[1])


@pytest.mark.parametrize(
    ("bind", "alone"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
    ],
)
def test_what_only_this_machine_reaches(bind: str, *, alone: bool) -> None:
    assert is_loopback(bind) is alone
