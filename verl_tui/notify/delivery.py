"""Delivers one message: as JSON to a webhook, or to a chat through apprise.

No post lasts longer than its deadline, no answer is larger than its limit, and no redirect is
followed: secrets go only where the user pointed.
"""

from __future__ import annotations

import json
import logging
import re
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from verl_tui.health.finding import Severity
from verl_tui.sources.http.addresses import NoAnswerError
from verl_tui.sources.http.client import exchanged

if TYPE_CHECKING:
    from verl_tui.notify.destination import Destination
    from verl_tui.notify.message import Message

DEADLINE = 10.0
"""Seconds of a post in all."""
_LIMIT = 64 * 1024
"""Bytes of an answer, of which only the status counts."""
_PASSING = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_EARLY,
    HTTPStatus.TOO_MANY_REQUESTS,
}
"""Answers besides 5xx after which another attempt may succeed."""


class NotSentError(Exception):
    """A message was not taken; the text is one sentence, without the address."""

    def __init__(self, why: str, *, passing: bool = False) -> None:
        super().__init__(why)
        self.passing = passing
        """True if another attempt may succeed."""


def deliver(to: Destination, message: Message, deadline: float = DEADLINE) -> str:
    """Send a message and return how the server answered, in a few words: `HTTP 200`.

    Args:
        to: Where it goes.
        message: The message.
        deadline: Seconds that a post may take in all.

    Raises:
        NotSentError: It was not taken.
    """
    try:
        if to.preset == "apprise":
            return _by_apprise(to, message)
        return _posted(to, json_of(message).encode(), deadline)
    except NotSentError as error:
        why = f"{to.name} {to.hide(str(error))}"
        raise NotSentError(why, passing=error.passing) from None


def json_of(message: Message) -> str:
    """Return what is posted to a webhook."""
    return json.dumps(message.as_data(), ensure_ascii=False, allow_nan=False)


def _posted(to: Destination, body: bytes, deadline: float) -> str:
    headers = {"Content-Type": "application/json; charset=utf-8"}
    if to.token:
        headers["Authorization"] = f"Bearer {to.token}"
    try:
        reply = exchanged(to.url, headers, body, deadline, _LIMIT, _proxies(to.url))
    except NoAnswerError as error:
        passing = not isinstance(error.__cause__, ValueError)
        raise NotSentError(str(error), passing=passing) from None
    status = reply.status
    answered = f"HTTP {status}"
    if status < HTTPStatus.MULTIPLE_CHOICES:
        return answered
    if status < HTTPStatus.BAD_REQUEST:
        raise NotSentError(f"redirects ({answered}), which is not followed")
    passing = status in _PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    raise NotSentError(f"answers with {answered}", passing=passing)


def _proxies(url: str) -> dict[str, str]:
    """Return the proxies that the environment names for an address.

    Raises:
        NotSentError: The one that is needed is of a kind that is not supported, such as SOCKS.
    """
    parts = urlsplit(url)
    proxies = {} if proxy_bypass(parts.netloc) else getproxies()
    kind, there, _ = proxies.get(parts.scheme, "").partition("://")
    if there and kind != "http":
        raise NotSentError(
            f"lies behind a proxy of the kind {kind}: only http is supported"
        )
    return proxies


def _by_apprise(to: Destination, message: Message) -> str:
    # Its log would show the address, on the screen too.
    log = logging.getLogger("apprise")
    log.addHandler(logging.NullHandler())
    log.propagate = False
    import apprise

    asset = apprise.AppriseAsset(app_id="verl-tui", http_redirects=False)
    service = apprise.Apprise(asset=asset)
    if not service.add(to.for_apprise):
        raise NotSentError("is none that apprise knows")
    kinds = {
        Severity.CRITICAL: apprise.NotifyType.FAILURE,
        Severity.WARNING: apprise.NotifyType.WARNING,
        Severity.INFO: apprise.NotifyType.INFO,
    }
    # Other formats would read signs in the text as markup.
    taken = service.notify(
        title=_calling_nobody(message.title),
        body=_calling_nobody(message.body),
        notify_type=kinds[message.severity],
        body_format=apprise.NotifyFormat.TEXT,
    )
    if not taken:
        raise NotSentError("did not take the message (apprise)", passing=True)
    return "taken by apprise"


def _calling_nobody(text: str) -> str:
    """Return a text that names nobody to a chat: `<at user_id="all">` or `@everyone` in a log
    would ring all phones.
    """
    return re.sub(r"(?<=[<@])(?=\S)", "\u200b", text)
