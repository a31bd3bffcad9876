"""Delivers one message to its destination: as JSON over HTTP, or through apprise."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from verl_tui.health.finding import Severity
from verl_tui.notify.posting import NotSentError, post
from verl_tui.notify.presets import refusal, request

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.notify.destination import Destination
    from verl_tui.notify.message import Message

MISSING = "this address needs apprise: pip install 'verl-tui[notify]'"


def deliver(to: Destination, message: Message, clock: Callable[[], float]) -> str:
    """Send a message and return how the server answered, in a few words: `HTTP 200`.

    Raises:
        NotSentError: It was not taken; the text is one sentence, without the address.
    """
    try:
        if to.preset == "apprise":
            return _by_apprise(to, message)
        now = clock()
        answer = post(request(to, message, now), now=now)
        why = refusal(to.preset, answer.body)
        if why is not None:
            raise NotSentError(why)
    except NotSentError as error:
        why = to.hide(str(error))
        raise NotSentError(
            f"{to.name} {why}", passing=error.passing, wait=error.wait
        ) from None
    return f"HTTP {answer.status}"


def _by_apprise(to: Destination, message: Message) -> str:
    # Its log would show the address, on the screen too.
    log = logging.getLogger("apprise")
    log.addHandler(logging.NullHandler())
    log.propagate = False
    try:
        import apprise
    except ModuleNotFoundError:
        raise NotSentError(
            f"is none that is known without apprise: {MISSING}"
        ) from None
    service = apprise.Apprise()
    if not service.add(to.url):
        raise NotSentError("is none that apprise knows")
    kinds = {
        Severity.CRITICAL: apprise.NotifyType.FAILURE,
        Severity.WARNING: apprise.NotifyType.WARNING,
        Severity.INFO: apprise.NotifyType.INFO,
    }
    # Other formats would read signs in the text as markup.
    taken = service.notify(
        title=message.title,
        body=message.body,
        notify_type=kinds[message.severity],
        body_format=apprise.NotifyFormat.TEXT,
    )
    if not taken:
        raise NotSentError("did not take the message (apprise)", passing=True)
    return "taken by apprise"
