"""The app on a replay: the same screens on the recorded clock, with keys to pause, step and
seek.
"""

from __future__ import annotations

from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any

from verl_tui.tui.app import VerlApp
from verl_tui.tui.keys import HelpSection, actions

if TYPE_CHECKING:
    from verl_tui.config import Config
    from verl_tui.reading import NewsSource
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.replay import Playback

_BEAT = 0.1
"""Seconds between looks at whether something has happened."""


class ReplayApp(VerlApp):
    """Shows a recorded run as it was at each moment. Nothing is read any more: the recording has it
    all.
    """

    HELP_SECTION = HelpSection("in a replay", rank=1000)
    FOOTER = (
        """
        pause                        Pause
        replay.previous replay.next  Step
        replay.slower replay.faster  Speed
    """
        + VerlApp.FOOTER
    )
    BINDINGS = actions("""
        p      pause           pause            Pause the replay
        .      go_steps(1)     replay.next      Next step
        comma  go_steps(-1)    replay.previous  Previous step
        >      play(1)  replay.faster    Faster
        <      play(-1)  replay.slower    Slower
        }      go_share(0.1)   replay.forward   Forward by a tenth
        {      go_share(-0.1)  replay.back      Back by a tenth
        ;      go_cursor       replay.cursor    Go to the step at the charts' cursor
        r      reload          reload           Play from the beginning
        f7     go_steps(-1)    replay.f7        Previous step, over every screen  EVERYWHERE
        f8     pause           replay.f8        Pause the replay, over every screen  EVERYWHERE
        f9     go_steps(1)     replay.f9        Next step, over every screen  EVERYWHERE
    """)

    def __init__(self, playback: Playback, config: Config, **options: Any) -> None:
        """Make the app.

        Args:
            playback: What plays the recording.
            config: The user's configuration.
            options: As for the app that watches.
        """
        self._playback = playback
        super().__init__((), config, clock=playback.now, **options)

    def on_mount(self) -> None:
        """Look regularly for news."""
        self.set_interval(_BEAT, self._beat)

    def new_reading(self) -> NewsSource:
        """Return the playback: it delivers what was recorded."""
        self._playback.notify = lambda: self.post_message(self.News())
        return self._playback

    def _awake(self, now: float) -> None:
        """Note nothing: on the recorded clock a look may come hours after the one before it."""

    def _beat(self) -> None:
        playback = self._playback
        if playback.waiting:
            self.post_message(self.News())
        elif not playback.paused and monotonic() - self._painted >= self.config.refresh:
            self.paint()  # the recorded time goes on

    def view_at(self, now: float) -> View:
        """Return everything that the screens draw from, and where the replay is."""
        view = super().view_at(now)
        return replace(view, replay=self._playback.status(self._picked))

    # -- keys --------------------------------------------------------------------------------------

    def action_pause(self) -> None:
        """Stop the recorded clock, or let it go on."""
        self._playback.pause(paused=not self._playback.paused)
        self.paint()

    def action_play(self, faster: int) -> None:
        """Play faster (1) or slower (-1)."""
        self._playback.change_speed(faster)
        self.paint()

    def action_go_steps(self, count: int) -> None:
        """Go to a further step of the shown run, or back; over any pause that the run made."""
        playback = self._playback
        moment = playback.recording.next_step(playback.now(), self._picked, count)
        if moment is not None:
            self._go(moment)
        else:
            last = "last" if count > 0 else "first"
            self.notify(f"this is the {last} recorded step")

    def action_go_share(self, share: float) -> None:
        """Go forward by a share of the whole replay, or back."""
        playback = self._playback
        self._go(playback.recording.ahead(playback.now(), share))

    def action_go_cursor(self) -> None:
        """Go to the step at which the charts are read, for example that of a finding."""
        recorded = self._playback.recording.runs.get(self._picked or "")
        moment = None
        if recorded and self.cursor is not None:
            moment = recorded.when(self.cursor)
        if moment is not None:
            self._go(moment)
        else:
            sets = f"the charts have no cursor: {self.hints['chart.read_left']} sets it"
            goes = f"{self.hints['finding.next']} goes to the next finding"
            self.notify(f"{sets}, {goes}")

    def action_reload(self) -> None:
        """Play from the beginning."""
        self._go(self._playback.recording.start)

    def _go(self, moment: float) -> None:
        if self._playback.go(moment):
            self._forget()
            self._painted = monotonic()  # the way there is drawn only if it takes long
        else:
            self.call_later(self.paint)
