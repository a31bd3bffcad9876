"""The request that each service expects, and the answer by which it accepts a message.

Sources of the forms:

- Slack: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks and, for `&<>`,
  https://docs.slack.dev/messaging/formatting-message-text
- Feishu, Lark: https://open.feishu.cn/document/client-docs/bot-v3/add-custom-bot
- DingTalk: https://open.dingtalk.com/document/robots/custom-robot-access and, for the signature,
  https://open.dingtalk.com/document/robots/customize-robot-security-settings
- ntfy: https://docs.ntfy.sh/publish/#publish-as-json
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import quote, unquote

from verl_tui.health.finding import Severity
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from verl_tui.notify.destination import Destination
    from verl_tui.notify.message import Message

_Posted: TypeAlias = "tuple[str, dict[str, Any]]"
"""An address, and the data that are posted to it."""
_NTFY_PRIORITIES = {Severity.CRITICAL: 5, Severity.WARNING: 4, Severity.INFO: 3}
"""Of 1 (least) to 5: https://docs.ntfy.sh/publish/#message-priority."""
_NTFY_LONGEST = 3500
"""Bytes of a text: beyond 4,096 ntfy makes a file of it."""


class Request(NamedTuple):
    """The data of a request, and the address it goes to."""

    url: str
    body: bytes
    headers: Mapping[str, str]


def request(destination: Destination, message: Message, now: float) -> Request:
    """Return what is posted for a message.

    Args:
        destination: Where it goes.
        message: The message.
        now: Seconds since the epoch, for a signature.
    """
    url, data = _FORMS[destination.preset](destination, message, now)
    headers = {"Content-Type": "application/json; charset=utf-8"}
    if destination.token:
        headers["Authorization"] = f"Bearer {destination.token}"
    body = json.dumps(data, ensure_ascii=False, allow_nan=False)
    return Request(url, body.encode(), headers)


def refusal(preset: str, body: bytes) -> str | None:
    """Return why a service did not take a message though it answered with success, None if it did.

    Feishu and DingTalk answer so, with a code that is not zero.
    """
    code, words = _CODES.get(preset, ("", ""))
    if not code:
        return None
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        # the latter where it is nested a thousand times
        return "answers with something other than JSON"
    if not isinstance(data, dict) or code not in data:
        return "answers without saying whether it took the message"
    if data[code] == 0:
        return None
    return f"refuses the message: {one_line(f'{data[code]} {data.get(words)}', 160)}"


def feishu_signature(secret: str, now: float) -> dict[str, str]:
    """Return the fields that sign a message to Feishu: the key is time and secret, the text is
    empty.
    """
    timestamp = str(int(now))
    digest = hmac.new(f"{timestamp}\n{secret}".encode(), b"", hashlib.sha256).digest()
    return {"timestamp": timestamp, "sign": base64.b64encode(digest).decode()}


def dingtalk_signature(secret: str, now: float) -> str:
    """Return the query that signs a message to DingTalk: the key is the secret, the time is in
    milliseconds.
    """
    timestamp = str(int(now * 1000))
    signed = f"{timestamp}\n{secret}".encode()
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).digest()
    sign = quote(base64.b64encode(digest).decode(), safe="")
    return f"timestamp={timestamp}&sign={sign}"


def _json(to: Destination, message: Message, _now: float) -> _Posted:
    return to.url, message.as_data()


def _slack(to: Destination, message: Message, _now: float) -> _Posted:
    # Without this, the name of a run could call everybody: <!channel>.
    text = message.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return to.url, {"text": text}


def _feishu(to: Destination, message: Message, now: float) -> _Posted:
    signed = feishu_signature(to.secret, now) if to.secret else {}
    # A tag such as <at user_id="all"> calls everybody.
    text = re.sub(r"<(?=\S)", "< ", message.text)
    return to.url, {**signed, "msg_type": "text", "content": {"text": text}}


def _dingtalk(to: Destination, message: Message, now: float) -> _Posted:
    url = to.url
    if to.secret:
        separator = "&" if "?" in url else "?"
        url += separator + dingtalk_signature(to.secret, now)
    return url, {
        "msgtype": "text",
        "text": {"content": message.text},
        "at": {"isAtAll": False},
    }


def _ntfy(to: Destination, message: Message, _now: float) -> _Posted:
    # JSON goes to the server's root and names the topic, which is the last part of the address.
    root, _, topic = to.parts.path.rstrip("/").rpartition("/")
    text = message.body.encode()[:_NTFY_LONGEST].decode(errors="ignore")
    return f"{to.parts.scheme}://{to.parts.netloc}{root}/", {
        "topic": unquote(topic),
        "title": message.title,
        "message": text,
        "priority": _NTFY_PRIORITIES[message.severity],
    }


_FORMS: Mapping[str, Callable[[Destination, Message, float], _Posted]] = {
    "json": _json,
    "slack": _slack,
    "feishu": _feishu,
    "dingtalk": _dingtalk,
    "ntfy": _ntfy,
}
_CODES = {"feishu": ("code", "msg"), "dingtalk": ("errcode", "errmsg")}
"""Preset -> the fields of an answer that hold its code, 0 for success, and its words."""
