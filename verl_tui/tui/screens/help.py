"""All keys, from the same tables that make them work."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import Binding
from textual.containers import Container
from textual.screen import ModalScreen

from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.panels.gpus import GpusPanel
from verl_tui.tui.panels.health import HealthPanel
from verl_tui.tui.panels.runs import RunsPanel
from verl_tui.tui.panels.samples import SamplesPanel
from verl_tui.tui.samples import query
from verl_tui.tui.screens.dashboard import Dashboard
from verl_tui.tui.screens.samples import SamplesScreen
from verl_tui.tui.widgets.plot import Plot
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from textual.app import App, ComposeResult
    from textual.binding import BindingType
    from textual.dom import DOMNode

_KEYS = {
    "question_mark": "?",
    "slash": "/",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "pagedown": "pgdn",
    "pageup": "pgup",
}


class HelpScreen(ModalScreen[None]):
    """A list of all keys, everywhere first, then panel by panel."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark", "dismiss", "Back", show=False)]
    DEFAULT_CSS = """
    HelpScreen {
        align: center middle;
        & > Container {
            width: 76;
            max-width: 100%;
            height: 90%;
            border: round $accent;
            border-title-color: $accent;
            background: $surface;
            padding: 0 1;
        }
    }
    """

    def compose(self) -> ComposeResult:
        """A frame with scrolling rows."""
        with Container() as frame:
            frame.border_title = "keys"
            frame.border_subtitle = "esc closes · keys can be remapped in the configuration"
            yield Rows(id="help")

    def on_mount(self) -> None:
        """Fill the rows."""
        rows = self.query_one(Rows)
        rows.set_rows(list(self._rows(self.app)))
        rows.focus()

    def _rows(self, app: App[object]) -> Iterator[Text]:
        sections: list[tuple[str, Iterable[type[DOMNode]]]] = [
            ("everywhere", (type(app), Dashboard)),
            ("charts", (ChartsPanel, Plot)),
            ("health", (HealthPanel,)),
            ("samples", (SamplesPanel,)),
            ("runs", (RunsPanel,)),
            ("gpus", (GpusPanel,)),
            ("all samples", (SamplesScreen,)),
            ("lists", (Rows,)),
        ]
        if any(isinstance(screen, SamplesScreen) for screen in app.screen_stack):
            sections.insert(0, sections.pop(-2))  # what is in front comes first
        for title, owners in sections:
            lines = [line for owner in owners for line in _lines(owner, app)]
            if title == "everywhere":
                lines.append(_line("ctrl+p", "Command palette: every action by its name, themes"))
            if lines:
                yield Text(_HEADINGS.get(title, f"{title}, while they have the focus"), style="bold")
                yield from lines
                if title == "all samples":
                    yield from (Text(f"  {line}") for line in query.HELP)
                yield Text()


def _lines(owner: type[DOMNode], app: App[object]) -> Iterator[Text]:
    """Yield a line for each of a class's own bindings, under the keys the user has given them."""
    for binding in owner.BINDINGS:
        if not isinstance(binding, Binding) or not binding.description or binding.id in _MANY:
            continue
        keys = app._keymap.get(binding.id, binding.key) if binding.id else binding.key
        shown = " ".join(_KEYS.get(key, key) for key in keys.split(","))
        if binding.id == "run.1":
            shown = "1 … 9"
        yield _line(shown, "Run by its number" if binding.id == "run.1" else binding.description)


def _line(keys: str, words: str) -> Text:
    return Text(f"  {keys:<18}{words}")


_HEADINGS = {"everywhere": "everywhere", "all samples": "all samples of a step, over the full screen"}
_MANY = {f"run.{n}" for n in range(2, 10)}
