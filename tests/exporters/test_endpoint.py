"""The server of metrics: who is let in, and what it answers before and after there is something to
show.
"""

from __future__ import annotations

import base64
import socket
import urllib.error
import urllib.request
from contextlib import closing

import pytest
from prometheus_client.core import GaugeMetricFamily

from verl_tui.exporters.endpoint import MetricsServer, is_loopback
from verl_tui.exporters.prometheus import Exposition

PATIENCE = 30.0


def asked(address: str, login: str | None = None) -> tuple[int, str]:
    """Return status and text of an answer."""
    request = urllib.request.Request(address)
    if login is not None:
        words = base64.b64encode(login.encode()).decode()
        request.add_header("Authorization", f"Basic {words}")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def page(value: float) -> Exposition:
    return Exposition((GaugeMetricFamily("verl_loss", "loss", value=value),))


def test_the_newest_page_is_served_and_before_there_is_one_nothing():
    with closing(MetricsServer("127.0.0.1", 0)) as endpoint:
        assert asked(endpoint.address)[0] == 503
        endpoint.show(page(1))
        endpoint.show(page(2))
        status, text = asked(endpoint.address)
        assert status == 200
        assert "verl_loss 2.0\n" in text
        assert asked(endpoint.address.removesuffix("/metrics"))[0] == 404


def test_without_the_right_login_nobody_sees_anything():
    with closing(MetricsServer("127.0.0.1", 0, login="ann:sesame")) as endpoint:
        endpoint.show(page(1))
        for login in (None, "", "ann", "ann:wrong", "bob:sesame", "ann:sesame2"):
            status, text = asked(endpoint.address, login)
            assert status == 401
            assert "verl_loss" not in text


def test_a_port_in_use_cannot_be_had():
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            MetricsServer("127.0.0.1", port)


def test_what_only_this_machine_reaches():
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1")))
    assert not any(map(is_loopback, ("0.0.0.0", "::")))
