"""Asks HTTP servers that may be slow, wrong, huge or hostile: every question ends in an answer or
in one sentence.

No question lasts longer than its deadline, no answer is larger than its limit, and no redirect
leads to another server, so that a login goes only where the user pointed.
"""

from __future__ import annotations

import base64
import http.client
import netrc
import os
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from verl_tui.sources.http import addresses
from verl_tui.sources.http.addresses import NoAnswerError
from verl_tui.sources.http.exchange import UNANSWERED, Exchange, connected

if TYPE_CHECKING:
    from verl_tui.sources.http.addresses import Address
    from verl_tui.sources.http.exchange import Reply

AUTHORIZATION = "VERL_TUI_HTTP_AUTHORIZATION"
"""Environment variable that holds a whole header, `Bearer …`, for every server that the user
names.
"""

_DEADLINE = 20.0
"""Seconds that a question may take in all: twice what Prometheus gives a scrape by default."""
_LIMIT = 64 * 2**20
"""Bytes of an answer: 300,000 points of Prometheus come to 10 MB."""
_CHUNK = 64 * 1024
_REDIRECTS = 3
_ENDS = (b"\n", b"}")
"""Last bytes of a page of metrics, and of JSON, that are whole."""
_MOVED = (301, 302, 307, 308)
_REASONS = {
    401: f"asks for a login: put one into ~/.netrc, or a header into {AUTHORIZATION}",
    403: "refuses access (HTTP 403)",
    404: "finds nothing at this address (HTTP 404)",
}
"""Statuses of redirects, and what is said of some others."""


class Client:
    """Asks servers, and follows them to other addresses of theirs."""

    def __init__(
        self,
        *,
        deadline: float = _DEADLINE,
        limit: int = _LIMIT,
        login: bool = True,
    ) -> None:
        """Ask nothing yet.

        Args:
            deadline: Seconds that a question may take in all.
            limit: Bytes of an answer at most.
            login: Whether the user's login may go there.
        """
        self.received = 0
        """Bytes of all answers."""
        self._deadline = deadline
        self._limit = limit
        self._login = login

    def ask(self, address: Address, *, form: str | None = None) -> bytes:
        """Return what a server answers.

        Args:
            address: Of the server.
            form: What to send, url-encoded; without it nothing is sent.

        Raises:
            NoAnswerError: There is none that can be used.
        """
        for _ in range(_REDIRECTS + 1):
            status, headers, body = self._answer(address, form)
            if status not in _MOVED:
                break
            address = self._onward(address, headers.get("location", ""))
        else:
            raise NoAnswerError("redirects without end")
        if status == HTTPStatus.OK:
            return body
        reason = _REASONS.get(status, f"answers with HTTP {status}")
        raise NoAnswerError(reason, status, body[:_CHUNK])

    def _onward(self, address: Address, location: str) -> Address:
        try:
            onward = addresses.parse_address(urljoin(address.text, location))
        except ValueError as error:
            raise NoAnswerError("redirects without naming an address") from error
        if onward.origin != address.origin:
            raise NoAnswerError(
                f"redirects to another server, {onward.place}: name that one if it is meant"
            )
        return onward

    def _answer(self, address: Address, form: str | None) -> Reply:
        """Ask once."""
        headers = {"Accept": "*/*"}
        if self._login:
            headers |= _login(address.host)
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        exchange = Exchange(self._deadline, self._limit)
        secure = address.scheme == "https"
        try:
            connection = connected(
                address.host, address.port, self._deadline, secure=secure
            )
            answer = exchange.run(connection, address.path, form, headers)
            if _is_cut(answer):
                raise http.client.IncompleteRead(b"")
        except UNANSWERED as error:
            raise NoAnswerError(exchange.why(error)) from error
        self.received += len(answer.body)
        return answer


def _is_cut(answer: Reply) -> bool:
    """Return whether an answer is shorter than it was to be; one of no stated length must end as a
    page of metrics or JSON does. Of one in chunks http.client knows.
    """
    stated = answer.headers.get("content-length", "")
    if stated.isdecimal():
        return len(answer.body) < int(stated)
    chunked = "chunked" in answer.headers.get("transfer-encoding", "").lower()
    return not chunked and bool(answer.body) and not answer.body.endswith(_ENDS)


def _login(host: str) -> dict[str, str]:
    """Return the header that authorises a request: the environment's, else a login from `~/.netrc`
    for that host.
    """
    stated = os.environ.get(AUTHORIZATION, "").strip()
    if stated:
        if stated.isprintable() and stated.isascii():
            return {"Authorization": stated}
        return {}
    try:
        known = netrc.netrc(os.environ.get("NETRC") or None).authenticators(host)
    except (OSError, netrc.NetrcParseError, UnicodeError):
        return {}
    if known is None or not known[2]:
        return {}
    login = base64.b64encode(f"{known[0] or ''}:{known[2]}".encode()).decode()
    return {"Authorization": f"Basic {login}"}
