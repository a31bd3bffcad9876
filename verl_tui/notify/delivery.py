"""Delivers one message: as JSON to a webhook, or to a chat through apprise.

No redirect is followed: secrets go only where the user pointed.
"""

from __future__ import annotations

import json
import logging
import re
from http import HTTPStatus
from http.client import HTTPException
from ssl import SSLError
from typing import TYPE_CHECKING
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from verl_tui import __version__
from verl_tui.health.finding import Severity
from verl_tui.sources.http.client import trust
from verl_tui.text import one_line

if TYPE_CHECKING:
    from verl_tui.notify.destination import Destination
    from verl_tui.notify.message import Message

PATIENCE = 10.0
"""Seconds that a post waits for the server."""
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


def deliver(to: Destination, message: Message, patience: float = PATIENCE) -> str:
    """Send a message and return how the server answered, in a few words: `HTTP 200`.

    Args:
        to: Where it goes.
        message: The message.
        patience: Seconds that a post waits for the server.

    Raises:
        NotSentError: It was not taken.
    """
    try:
        if to.preset == "apprise":
            return _by_apprise(to, message)
        return _posted(to, json_of(message).encode(), patience)
    except NotSentError as error:
        why = f"{to.name} {to.hide(str(error))}"
        raise NotSentError(why, passing=error.passing) from None


def json_of(message: Message) -> str:
    """Return what is posted to a webhook."""
    return json.dumps(message.as_data(), ensure_ascii=False, allow_nan=False)


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Follow none: secrets go only where the user pointed."""


def _posted(to: Destination, body: bytes, patience: float) -> str:
    """Post, through the proxy that the environment names, if any."""
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "User-Agent": f"verl-tui/{__version__}",
    }
    if to.token:
        headers["Authorization"] = f"Bearer {to.token}"
    try:
        opener = build_opener(_NoRedirect, HTTPSHandler(context=trust()))
        request = Request(to.url, body, headers)  # noqa: S310 - of the web, as was checked
        with opener.open(request, timeout=patience) as reply:
            return f"HTTP {reply.status}"
    except HTTPError as error:
        error.close()
        status = error.code
    except (OSError, HTTPException, ValueError) as error:
        raise _unanswered(error, patience) from None
    if status < HTTPStatus.BAD_REQUEST:
        raise NotSentError(f"redirects (HTTP {status}), which is not followed")
    passing = status in _PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    raise NotSentError(f"answers with HTTP {status}", passing=passing)


def _unanswered(error: Exception, patience: float) -> NotSentError:
    """Return why there was no answer, in words."""
    why = error.reason if isinstance(error, URLError) else error
    if isinstance(why, TimeoutError):
        return NotSentError(f"gives no answer within {patience:g} s", passing=True)
    what = (
        "speaks no TLS that can be trusted"
        if isinstance(why, SSLError)
        else "cannot be asked"
    )
    words = (
        (isinstance(why, OSError) and why.strerror) or str(why) or type(why).__name__
    )
    return NotSentError(
        f"{what}: {one_line(words, 200)}", passing=not isinstance(why, ValueError)
    )


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
