"""Messages about a run, as data for programs and as a few lines for people."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING
from uuid import uuid4

from verl_tui.health.finding import Severity
from verl_tui.secrets import shown

if TYPE_CHECKING:
    from verl_tui.plain_data import Data

VERSION = 1
"""Version of the fields: grows when a field is removed or changes its meaning."""
NAME = 120
"""Characters of a run's name, or of a key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message, with its fields as JSON has them. Its texts are safe: made of one line each,
    without keys and passwords.
    """

    id: str = field(default_factory=lambda: uuid4().hex)
    """Different for each message, the same if it is sent again after an error."""
    time: float
    """When it happened, in seconds since the epoch."""
    event: str
    """`finding`, `cleared`, `state`, `guard`, `summary` or `test`."""
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
    message: str
    """One sentence."""
    advice: str | None = None
    repeated: bool = False
    """True if it was reported before and still lasts."""
    held_back: dict[str, int] = field(default_factory=dict)
    """What a summary stands for -> how often."""

    @property
    def about(self) -> str:
        """The finding or state."""
        return self.finding or self.state or self.event

    @property
    def subject(self) -> str:
        """Run and finding, or state."""
        return ": ".join(filter(None, (self.run, self.about)))

    @property
    def title(self) -> str:
        """The message in a few words."""
        words = {
            "finding": f"{self.severity.word}: {self.about}{' (still)' * self.repeated}",
            "cleared": f"over: {self.about}",
            "summary": f"{sum(self.held_back.values())} held back",
        }.get(self.event, self.about)
        return ": ".join(filter(None, ("verl-tui", self.run, words)))

    @property
    def body(self) -> str:
        """The text below the title."""
        return self.message + (f"\nnext: {self.advice}" if self.advice else "")

    @property
    def text(self) -> str:
        """Title and body."""
        return f"{self.title}\n{self.body}"

    def as_data(self) -> Data:
        """Return the message for JSON; the fields are documented and stable."""
        at = datetime.fromtimestamp(self.time, timezone.utc)
        return {
            "version": VERSION,
            "program": "verl-tui",
            **asdict(self),
            "time": at.isoformat(timespec="seconds"),
            "severity": self.severity.word,
            "held_back": sum(self.held_back.values()),
            "title": self.title,
            "text": self.text,
        }


def of_guard(event: Data, now: float) -> Message:
    """Return the message about one of the guard's events."""
    kind = str(event["event"])
    id = event.get("run_id")
    argv = event.get("argv")
    # only the program: arguments may be anybody's secrets
    program = argv[0] if isinstance(argv, list) and argv else "the command"
    does = "would run" if event.get("dry_run") else "runs"
    text = GUARD_EVENTS[kind].format(**{"program": program, "does": does, **event})
    urgent = kind in _URGENT or bool(event.get("code"))
    return Message(
        event="guard",
        time=now,
        message=shown(text) or "",
        run=shown(str(event["run"]), NAME),
        run_id=None if id is None else str(id),
        severity=Severity.CRITICAL if urgent else Severity.INFO,
    )


GUARD_EVENTS = {
    "watching": "is watched",
    "tripped": "{id} tripped: {message}",
    "command": "{does} {program}",
    "command-ended": "the command ended with code {code}",
    "best": "best {metric}: {value} at step {step}",
    "ended": "{state}, no longer watched",
    "problem": "the command could not be started: {message}",
    "unguarded": "{message}",
}
"""The guard's events in words."""
_URGENT = ("tripped", "command", "problem", "unguarded")
