"""Messages about a run, as data for programs and as a few lines for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from verl_tui.health.finding import Severity
from verl_tui.secrets import hide
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from verl_tui.health.finding import Finding

VERSION = 1
"""Version of the fields: grows when a field is removed or changes its meaning."""
_LONGEST = 500
"""Characters of a sentence: a chat shows a few lines."""
_LONGEST_NAME = 120
_LINES = 12
"""Runs and findings that a summary names."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message. Its texts are safe: made of one line each, without keys and passwords."""

    event: str
    """`finding`, `cleared`, `state`, `guard`, `summary` or `test`."""
    time: float
    """When it happened, in seconds since the epoch."""
    message: str
    """One sentence."""
    run: str | None = None
    run_id: str | None = None
    finding: str | None = None
    """Id of the finding."""
    key: str | None = None
    """The log's own key of the metric that was judged."""
    severity: Severity = Severity.INFO
    state: str | None = None
    step: int | None = None
    since_step: int | None = None
    advice: str | None = None
    repeated: bool = False
    """True if it was reported before and still lasts."""
    held: dict[str, int] = field(default_factory=dict)
    """What a summary stands for -> how often."""
    note: str | None = None
    """Added where this is the last message for some time."""
    id: str = field(default_factory=lambda: uuid4().hex)
    """Different for each message, the same if it is sent again after an error."""

    @property
    def held_back(self) -> int:
        """Number of messages that a summary stands for."""
        return sum(self.held.values())

    @property
    def subject(self) -> str:
        """Run and finding, or state."""
        about = self.finding or self.state or self.event
        return f"{self.run}: {about}" if self.run else about

    @property
    def title(self) -> str:
        """The message in a few words."""
        about = self.finding or self.state or self.event
        words = {
            "finding": f"{self.severity.word}: {about}{' (still)' if self.repeated else ''}",
            "cleared": f"over: {about}",
            "summary": f"{self.held_back} held back",
        }.get(self.event, about)
        return ": ".join(part for part in ("verl-tui", self.run, words) if part)

    @property
    def body(self) -> str:
        """The text below the title."""
        advice = f"next: {self.advice}" if self.advice else None
        return "\n".join(part for part in (self.message, advice, self.note) if part)

    @property
    def text(self) -> str:
        """Title and body."""
        return f"{self.title}\n{self.body}"

    def as_data(self) -> dict[str, Any]:
        """Return the message for JSON; the fields are documented and stable."""
        time = datetime.fromtimestamp(self.time, timezone.utc).isoformat(
            timespec="seconds"
        )
        stated = {name: getattr(self, name) for name in _STATED}
        return {
            "version": VERSION,
            "program": "verl-tui",
            **stated,
            "time": time,
            "severity": self.severity.word,
        }


_STATED = (
    *("id", "time", "event", "run", "run_id", "finding", "key", "severity", "state"),
    *("step", "since_step", "message", "advice", "repeated", "held_back"),
    *("title", "text"),
)
"""Fields of a message for JSON, in order."""


def safe_message(text: str) -> str:
    """Return a sentence with text from a log, made safe for a message."""
    return one_line(hide(one_line(text, 2 * _LONGEST)), _LONGEST)


def safe_name(name: str) -> str:
    """Return the name of a run, or a key, for a message."""
    return one_line(hide(one_line(name, 2 * _LONGEST_NAME)), _LONGEST_NAME)


def safe_key(key: str | None) -> str | None:
    """Return the key of a finding for a message, None where it has none."""
    return None if key is None else safe_name(key)


def of_finding(
    run: str,
    finding: Finding,
    now: float,
    *,
    run_id: str | None = None,
    repeated: bool = False,
) -> Message:
    """Return the message about a finding; its evidence stays here, as it may quote the log."""
    return Message(
        "finding",
        now,
        safe_message(finding.message),
        run=safe_name(run),
        run_id=run_id,
        finding=finding.id,
        key=safe_key(finding.key),
        severity=finding.severity,
        step=finding.step,
        since_step=finding.since_step,
        advice=None if finding.advice is None else safe_message(finding.advice),
        repeated=repeated,
    )


def trial(now: float) -> Message:
    """Return a message that only shows that messages arrive."""
    return Message("test", now, "this is a test: messages from here arrive")


def summary_message(held: Mapping[str, int], worst: Severity, now: float) -> Message:
    """Return one message in place of all that were held back.

    Args:
        held: What they were about -> how often.
        worst: Their greatest severity.
        now: Seconds since the epoch.
    """
    shown = [name if times == 1 else f"{name} ×{times}" for name, times in held.items()]
    left = len(shown) - _LINES
    ending = [f"and {left} more"] if left > 0 else []
    text = "; ".join((*shown[:_LINES], *ending))
    return Message("summary", now, text, severity=worst, held=dict(held))
