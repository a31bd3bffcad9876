"""The app: its keys, and the view of the monitor's state that its screens draw."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from textual import events, on
from textual.app import SystemCommand

from verl_tui.means import next_of
from verl_tui.on_demand.samples import SampleBrowser
from verl_tui.rendering.session.notes import NoteBook
from verl_tui.rendering.session.run_order import RunListing, first_to_show
from verl_tui.rendering.session.snapshot import View
from verl_tui.rendering.session.visits import AWAY, Visits
from verl_tui.rendering.verdict_row import problems
from verl_tui.tui.export import copy_here, take_picture
from verl_tui.tui.keys import HelpSection, action, actions, declaring
from verl_tui.tui.messages import Once, toast
from verl_tui.tui.monitor_app import MonitorApp
from verl_tui.tui.panels.runs import RunsPanel
from verl_tui.tui.panels.samples import SamplesPanel
from verl_tui.tui.screens.dashboard import Dashboard
from verl_tui.tui.screens.palette import Palette, commands
from verl_tui.tui.terminal.net import ContainedPart
from verl_tui.tui.widgets.chart import MoveCursor, with_step_in_sight

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from textual.await_complete import AwaitComplete
    from textual.screen import Screen

    from verl_tui.config import Config


class ScreenSpec(NamedTuple):
    """One screen that a key opens."""

    section: HelpSection
    """What the key is for, and its place."""
    kind: type[Any]
    """The screen, made for a dashboard."""
    key: str
    id: str
    """Its name in the configuration of keys."""
    words: str
    """Its name in the help and in the command palette."""
    short: str = ""
    """The word for it in the last row of the dashboard; empty: the key is not named there."""


_FOUND = [
    ScreenSpec(getattr(one, "HELP_SECTION", HelpSection("", rank=10)), one, *one.SCREEN)
    for one in declaring("verl_tui.tui.screens", "SCREEN")
]
_FOUND.sort(key=lambda one: (one.section.rank, one.kind.__module__))
SCREENS = {one.kind.__module__.rpartition(".")[2]: one for one in _FOUND}
"""The screens that a key opens over the dashboard, by the names of their modules, in the order of
the help.
"""


class VerlApp(MonitorApp):
    """Watches runs in the terminal."""

    TITLE = "verl-tui"
    VERTICAL_BREAKPOINTS = [(0, "-line"), (3, "-tall")]  # noqa: RUF012 - as Textual has it
    BINDINGS = actions(
        """
        q  quit  quit  Quit
        """,
        (
            action(
                one.key, f"open_screen('{name}')", one.id, one.words, one.section.task
            )
            for name, one in SCREENS.items()
        ),
        """
        p       pause        pause    Pause
        r       reload       reload   Read everything again
        ctrl+s  picture      picture  Screenshot (SVG and text)  TAKE  EVERYWHERE
        ctrl+y  copy_here    copy     Copy what the cursor is at  TAKE  EVERYWHERE
        ctrl+r  copy_report  report   Copy a report of errors of verl-tui's own  TAKE  EVERYWHERE
        ctrl+l  redraw       redraw   Redraw the screen

        ctrl+p  command_palette  palette  Command palette: every action by name, themes  EVERYWHERE
        colon   command_palette  palette.colon  Command palette, where nothing is typed
        ctrl+z  suspend_process  suspend  Suspend
        """,
    )
    FOOTER = "\n".join(
        f"{one.id}  {one.short}" for one in SCREENS.values() if one.short
    )
    """Keys of the other screens, for the last row."""

    class Read(Once):
        """Samples that a screen or a panel shows have been read."""

    cursor: int | None = None
    """Step at which the charts are read."""
    _greeted = False
    """True while it is said what has changed before the first key."""

    def __init__(
        self,
        specs: Sequence[str],
        config: Config,
        *,
        shown: str | None = None,
        **options: Any,
    ) -> None:
        """Make the app.

        Args:
            specs: Paths, directories and globs to watch.
            config: The user's configuration.
            shown: Name of the run to begin with; by default the one that needs a look first.
            options: As for the app without screens.
        """
        super().__init__(specs, config, **options)
        self.browser = SampleBrowser(lambda: self.post_message(self.Read()))
        self._dashboard = Dashboard()
        self._picked = shown
        self._chosen = shown is not None
        """True once the user has chosen a run, or the first one has been chosen for them."""
        self._visits = Visits(self.state_file)
        self._session = View(
            self.monitor,
            None,
            0.0,
            keys=self.hints,
            acknowledgements=self._attention,
            notebook=NoteBook(self.state_file.path),
            browser=self.browser,
            listing=RunListing(self.state_file),
        )
        """What stays the same from view to view."""

    def get_default_screen(self) -> Screen[None]:
        """The dashboard is the screen below all others."""
        return self._dashboard

    def on_unmount(self) -> None:
        """Stop reading samples, and remember what was looked at."""
        self.browser.stop()
        self._visits.keep()

    @on(Read)
    def _show_samples(self) -> None:
        """Draw the samples that have been read; nothing else has changed."""
        for screen in self.screen_stack[-1:]:  # there is none as the app ends
            if hasattr(screen, "show_samples"):
                screen.show_samples(self.view_at(self._clock()))

    # -- drawing -----------------------------------------------------------------------------------

    def _draw(self, now: float) -> None:
        """Have the screen in front show the newest state as it was judged last, and hand it to the
        dashboard.

        After a key this is enough, at the time of the last judgement: none of two hundred runs has
        to be judged again.
        """
        self._shown_at = now
        view = self.view_at(now)
        for screen in self.screen_stack:
            if hasattr(screen, "show") and screen in (self.screen, self._dashboard):
                at = screen if isinstance(screen, ContainedPart) else self
                at.attempt(screen.show, view)
        words = self._visits.words(view, key=False)
        if words:
            self._greeted = True
            self.notify(words, timeout=AWAY, markup=False)

    async def on_event(self, event: events.Event) -> None:
        """Note that the user is there, and say what has changed meanwhile."""
        if isinstance(event, events.Key) and not event.is_forwarded:
            if self._greeted:
                self._greeted = False
                self.clear_notifications()
            view = self.view_at(self._clock())
            toast(self, self._visits.words(view, key=True), rows=2)
        await super().on_event(event)

    def pop_screen(self) -> AwaitComplete:
        """Close the screen in front, and draw the one below, which was not drawn meanwhile: also
        where drawing is paused, since keys may have chosen another run or step.
        """
        closed = super().pop_screen()
        self._draw(self._shown_at)
        return closed

    def view_at(self, now: float) -> View:
        """Return everything that the screens draw from."""
        runs = self.monitor.runs
        if not self._chosen and not self._loading and runs:
            # Once: what the user looks at is never taken away by what happens elsewhere.
            self._picked = first_to_show(self.monitor, now, self._session.listing)
            self._chosen = True
        if self._picked not in runs and not (self._picked and self._loading):
            self._picked = next(iter(runs), None)
        return replace(
            self._session,
            monitor=self.monitor,
            run=runs.get(self._picked or ""),
            now=now,
            cursor=self.cursor,
            loading=self._loading,
            paused=self._paused,
            pins=self.state_file.state.pins,
            troubles=self.troubles,
        )

    @on(RunsPanel.Picked)
    def _pick(self, event: RunsPanel.Picked) -> None:
        self._chosen = True
        if event.name != self._picked:
            self._picked = event.name
            self.cursor = None
            self._draw(self._shown_at)

    @on(MoveCursor)
    def _move_cursor(self, event: MoveCursor) -> None:
        step = event.step
        if step is not None:
            self._dashboard.panel(SamplesPanel).go_to(step)
        if step != self.cursor:
            self.cursor = step
            charts, run = self._dashboard.charts, self.view_at(self._shown_at).run
            charts.look = with_step_in_sight(charts.look, run, step)
            self._draw(self._shown_at)

    # -- keys --------------------------------------------------------------------------------------

    def action_switch_run(self, way: int) -> None:
        """Show the next (1) or previous (-1) run of the list, in a circle."""
        view = self.view_at(self._shown_at)
        runs = view.listed
        if not view.run or runs in ([], [view.run]):
            toast(self, "no other run is listed")
        else:
            self.post_message(RunsPanel.Picked(next_of(runs, view.run, way).name))

    def action_finding_of_all(self, way: int) -> None:
        """Show the next or previous warning of all runs in its run, in a circle."""
        view, chosen = self.view_at(self._shown_at), self._dashboard.chosen_finding
        stops = problems(view)
        if not stops:
            toast(self, "no warning in any run" + " as far as read" * view.loading)
            return
        here = (view.run, chosen and (chosen.id, chosen.key))
        at = [(run, (one.id, one.key)) for run, one in stops]
        run, finding = stops[at.index(next_of(at, here, way))]
        self._pick(RunsPanel.Picked(run.name))
        self._dashboard.go_to(finding)

    async def action_quit(self) -> None:
        """End without waiting for threads or a slow terminal."""
        self.exit(0)

    def action_open_screen(self, name: str) -> None:
        """Open a screen over the one in front, unless that is it."""
        kind = SCREENS[name].kind
        if not isinstance(self.screen, kind):
            self._dashboard.view = self.view_at(self._clock())
            self.push_screen(kind(self._dashboard))

    def action_picture(self) -> None:
        """Write the screen into files: as a picture, and as text."""
        take_picture(self, self._picked or "")

    def action_copy_here(self) -> None:
        """Copy the text at the cursor, on every screen."""
        copy_here(self)

    def action_command_palette(self) -> None:
        """Open the command palette."""
        if not isinstance(self.screen, Palette):
            offers = sorted(self.get_system_commands(self.screen))
            self.push_screen(Palette(self._dashboard, "an action", offers))

    def search_themes(self) -> None:
        """Offer the themes."""
        offers = [
            SystemCommand(name, "", partial(setattr, self, "theme", name))
            for name in sorted(self.available_themes)
        ]
        self.push_screen(Palette(self._dashboard, "a theme", offers))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Offer the actions of all keys, and other themes."""
        yield from commands(self, screen)
        yield SystemCommand("Theme", "other colours", self.search_themes)
