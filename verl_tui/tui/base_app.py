"""The app in its terminal: colours, the user's keys, the command palette, resizing and focus."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from textual.screen import Screen
from textual.theme import Theme

from verl_tui.rendering.session.preferences import StateFile, UserState
from verl_tui.rendering.session.snapshot import AppTrouble
from verl_tui.secrets import own_mask
from verl_tui.text import one_line
from verl_tui.toml_tables import toml_table
from verl_tui.tui.export import copy_text
from verl_tui.tui.keys import HintKeys, bindings, keymap, usual_keys
from verl_tui.tui.messages import toast
from verl_tui.tui.terminal.net import ContainedApp, ContainedPart

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from textual import events
    from textual.driver import Driver
    from textual.timer import Timer

    from verl_tui.config import Config
    from verl_tui.failures import Failure


_TABLE = toml_table(__file__, "themes.toml")
OURS = tuple(
    Theme(name, **row["colours"]) for name, row in _TABLE.items() if "colours" in row
)
PLAIN = "sixteen-colours"
"""The theme for terminals of so many: others' colours would become those that happen to be nearest,
white mostly. Its ground is its own, as the terminal's may be light. Without colours it does as
well: what is chosen is reversed.
"""

_LIKE_PANEL = (
    *("primary-muted", "block-cursor-blurred-background", "footer-background"),
    *("scrollbar-background", "scrollbar-corner-color"),
)
"""Grounds that are the panel's where there are 256 colours."""


def readable(variables: Mapping[str, str], theme: str, *, few: bool) -> dict[str, str]:
    """Return a theme's variables with those in their place that make all of it readable.

    Args:
        variables: What Textual makes of the theme.
        theme: Its name.
        few: Whether the terminal shows 256 colours.
    """
    row = _TABLE.get(theme, {})
    found = {**variables, **row.get("all", {})}
    if greys := few and row.get("in_256"):
        found |= {**greys, **dict.fromkeys(_LIKE_PANEL, greys["panel"])}
    if row:
        found["scrollbar"] = found["text-disabled"]
    return found


def in_force(configured: str, state: UserState, available: Collection[str]) -> str:
    """Return the theme to begin with: the one chosen in the app last, until the configuration names
    another.

    Args:
        configured: The theme in the configuration now.
        state: What is remembered of the user.
        available: Names of all themes there are.
    """
    remembered = state.theme if state.theme_instead_of == configured else ""
    return remembered if remembered in available else configured


SETTLED = 0.3
"""Seconds of focus after which all is repainted: passing by on alt-tab costs nothing."""


class TerminalApp(ContainedApp[int]):
    """An app in a user's terminal, with the user's colours, keys and habits."""

    DEFAULT_CSS = """
    /* The ground of the theme, not the terminal's: on a light one its colours cannot be read. */
    TerminalApp:ansi, TerminalApp:ansi Screen, TerminalApp:ansi Input {
        background: $background;
        color: $foreground;
    }
    TerminalApp:ansi Input > .input--placeholder { color: $foreground; }
    /* Textual reverses no option. */
    TerminalApp:nocolor OptionList > .option-list--option-highlighted {
        text-style: bold underline;
    }
    """
    CSS = """
    /* A line, not a box: it covers what is looked at. */
    Toast { width: auto; max-width: 100%; padding: 0 1; margin: 0; }
    """

    _known_theme = ""
    _repaint: Timer | None = None
    _reported = 0
    """Errors of our own that the user has copied a report of."""
    hints = cached_property(HintKeys)
    """Keys that sentences name; those of the user are known before anything is drawn."""

    def __init__(
        self,
        config: Config,
        *,
        ascii_only: bool = False,
        state_file: StateFile | None = None,
    ) -> None:
        """Make the app.

        Args:
            config: The user's configuration.
            ascii_only: Whether to keep to ASCII.
            state_file: The user's preferences; by default kept for this session only.
        """
        super().__init__()
        self.ascii_only = ascii_only
        self.config = config
        self.state_file = state_file or StateFile()
        self.user_keys: dict[str, str] = {}
        """Keys that the user has given to actions, by their names."""
        for theme in OURS:
            self.register_theme(theme)
        self._said: set[str] = set()
        """Errors outside of all parts that were said since a report was copied."""

    def get_driver_class(self) -> type[Driver]:
        """Return our driver where Textual would take its own for Linux."""
        usual = super().get_driver_class()
        if usual.__name__ != "LinuxDriver":
            return usual
        from verl_tui.tui.terminal.driver import RobustDriver

        return RobustDriver

    def on_mount(self) -> None:
        """Take the user's colours and keys."""
        known = self.available_themes
        theme = in_force(self.config.theme, self.state_file.state, known)
        if theme in known:
            plain = self._few_colours and not known[theme].ansi
            self.theme = PLAIN if plain else theme
        else:
            said = f"no theme is called {one_line(theme)}: there are "
            self.notify(said + ", ".join(sorted(known)), markup=False)
        self._known_theme = self.theme
        self.theme_changed_signal.subscribe(self, lambda _: self._remember_theme())
        # the shell had the terminal
        self.app_resume_signal.subscribe(self, lambda _: self.action_redraw())
        if self.config.keys:
            own = {one.id: one.key for one in bindings(type(self)) if one.id}
            found = keymap(self.config.keys, usual_keys(), own)
            self.user_keys = found.keys
            self.set_keymap(found.keys)
            for sentence in found.refused:
                self.warn(sentence)

    def warn(self, sentence: str) -> None:
        """Show a sentence that has to be read."""
        self.notify(sentence, severity="warning", timeout=15, markup=False)

    def action_help_quit(self) -> None:
        """Say how to quit: ctrl+c may have been pressed by mistake."""
        self.notify(f"{self.hints['quit']} quits", markup=False)

    # -- colours -----------------------------------------------------------------------------------

    def get_css_variables(self) -> dict[str, str]:
        """Return the theme's colours, changed where text would be hard to read."""
        few = not self.is_headless and self.console.color_system == "256"
        usual = super().get_css_variables()
        self.theme_variables = readable(usual, self.theme, few=few)
        return self.theme_variables

    @property
    def _few_colours(self) -> bool:
        """True if the terminal shows sixteen colours, or is to show none."""
        few = not self.is_headless and self.console.color_system == "standard"
        return self.no_color or few

    def _remember_theme(self) -> None:
        if self.theme != self._known_theme:
            self._known_theme = self.theme
            own, configured = self.theme, self.config.theme
            problem = self.state_file.change(
                lambda state: replace(state, theme=own, theme_instead_of=configured)
            )
            if problem:
                self.notify(problem, markup=False)

    # -- errors of our own -------------------------------------------------------------------------

    def tell(self, failure: Failure, part: ContainedPart | None) -> None:
        """Say in a part that it has failed; once over the screen what has failed outside of all."""
        copies = f"{self.hints['report']} copies a report"
        words = f"has failed: {failure.words}."
        if isinstance(part, Screen):
            part.fail(f"This screen {words} esc leaves it, {copies}.")
        elif part:
            part.fail(f"This panel {words} {copies}; all else goes on.")
        elif failure.words not in self._said:
            self._said.add(failure.words)
            toast(self, f"failed: {failure.words}; {copies}", rows=2)
            self.show_troubles()

    @property
    def troubles(self) -> tuple[AppTrouble, ...]:
        """Errors of our own that nobody has copied a report of."""
        if self.failures.count == self._reported:
            return ()
        key = self.hints["report"]
        lasting = self._said or any(
            isinstance(one, ContainedPart) and one.failed
            for screen in self.screen_stack
            for one in screen.walk_children(with_self=True)
        )
        if lasting:
            return (AppTrouble("error", f"error: {key}"),)
        return (AppTrouble("error over", f"error, over now: {key}", over=True),)

    def action_copy_report(self) -> None:
        """Copy what is known of errors of our own."""
        report = self.failures.report(own_mask())
        if not report:
            toast(self, "no error to report")
            return
        copy_text(self, report)
        self._reported = self.failures.count
        self._said.clear()
        self.show_troubles()

    # -- the terminal ------------------------------------------------------------------------------

    def on_app_blur(self, event: events.AppBlur) -> None:
        """Leave everything as it is: Textual would take the focus away, which paints half of the
        screen twice.
        """
        event.prevent_default()
        self._repaint_soon(wanted=False)

    def on_app_focus(self, event: events.AppFocus) -> None:
        """Repaint once the user has stayed: meanwhile others may have written to the terminal."""
        event.prevent_default()
        self._repaint_soon()

    def on_resize(self, event: events.Resize) -> None:
        """Forget what is in the terminal; repaint where the screen has this size already, as
        Textual sees no change.

        The terminal has lost the cells beyond the smallest of its sizes, and not all of these sizes
        are reported or painted.
        """
        self.forget_cells()
        # there is none as the app ends
        shown = self.screen_stack[-1:] if self.has_screen else ()
        if any(event.size == screen.outer_size for screen in shown):
            self._repaint_soon()

    def _repaint_soon(self, *, wanted: bool = True) -> None:
        if self._repaint:
            self._repaint.stop()
        self._repaint = self.set_timer(SETTLED, self.action_redraw) if wanted else None
