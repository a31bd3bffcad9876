"""A list of samples and one of them side by side; or, in place of both, the responses to one
prompt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.containers import Horizontal, Vertical

from verl_tui.rendering.samples import (
    changed_words,
    response_rows,
    sample_rows,
)
from verl_tui.rendering.samples.document import Document
from verl_tui.rendering.samples.header_lines import sample_words
from verl_tui.tui.terminal.lazy_strips import LazyStrips
from verl_tui.tui.widgets import looks
from verl_tui.tui.widgets.document_rows import DocumentRows
from verl_tui.tui.widgets.line import Line
from verl_tui.tui.widgets.role_styled import RoleStyled
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult

    from verl_tui.records import Sample
    from verl_tui.rendering.samples.browse import Browse
    from verl_tui.rendering.samples.response_rows import ResponseItem
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.samples import Place
    from verl_tui.tui.widgets.role_styled import Looks


class SideBySide(Horizontal, RoleStyled):
    """Draws the browsed samples, each part only if it has changed; CSS classes say which parts are
    wanted.

    That is `-digest` for the responses to one prompt, and `-list` where the list goes before the
    sample if there is room for one of them.
    """

    LOOKS: ClassVar[Looks] = {
        **looks.SAMPLES,
        "heading": "bold $text-accent",
        "prompt": "$foreground",
        "fields": "$foreground",
        "field": "$foreground",
        "repeated": "underline $text-warning",
        "hit": "reverse $text-primary",
        "here": "bold reverse $text-warning",
    }
    DEFAULT_CSS = """
    SideBySide {
        height: 1fr;
        & #side { width: 3fr; max-width: 72; border-right: vkey $panel-lighten-2; }
        & #titles { padding: 0; }
        & #list, & #digest, & #changes { height: 1fr; scrollbar-gutter: stable; }
        & #main { width: 5fr; }
        & #text { height: 1fr; scrollbar-gutter: stable; padding: 0 0 0 1; }
        & #sample { padding: 0 1; }
        & #responses { display: none; }
        & #changes { display: none; padding: 0 0 0 1; border-top: hkey $panel-lighten-2; }
        &.-history #changes { display: block; height: 2fr; }
        &.-digest {
            & #responses { display: block; width: 1fr; }
            & #side, & #main { display: none; }
        }
    }
    """

    def __init__(self, browse: Browse, *, id: str | None = None) -> None:
        """Make it.

        Args:
            browse: The samples to show.
            id: As of every widget.
        """
        super().__init__(id=id)
        self._browse = browse
        self._titles = Rows(id="titles")
        self._titles.can_focus = False
        self._titles.styles.height = 1
        self.list = Rows(choosing=True, id="list")
        self._line = Line(id="sample")
        self.text = DocumentRows(id="text")
        self.digest = Rows(choosing=True, id="digest")
        self.changes = Rows(id="changes")
        self._items: Sequence[Callable[[], ResponseItem]] = ()
        """The responses that are drawn."""
        self._drawn_list: object = None
        """Key of everything that the list was drawn from."""
        self._drawn_text: object = None
        self._drawn_changes: object = None
        self._clear = ""
        """The key that clears the filter."""

    def compose(self) -> ComposeResult:
        """The list on the left, the sample on the right."""
        with Vertical(id="side"):
            yield self._titles
            yield self.list
        with Vertical(id="main"):
            yield self._line
            yield self.text
        with Vertical(id="responses"):
            yield self.digest
            yield self.changes

    # -- drawing -----------------------------------------------------------------------------------

    def draw(self, *, clear: str) -> None:
        """Draw the visible parts; `clear` is the key that clears the filter."""
        self._clear = clear
        if self._browse.responses:
            self._draw_digest()
        else:
            self._draw_list()
            self._draw_sample()

    def draw_instead(self, rows: Sequence[Pieces]) -> None:
        """Draw these rows in place of a sample."""
        if self._drawn_text != rows:
            self._drawn_text = rows
            self.text.show(None, {})
            self.text.set_strips([self.inked(row) for row in rows])

    def _draw_list(self) -> None:
        rows = self.list
        listing = self._browse.listing
        order = self._browse.order
        width = rows.width
        page = self._browse.page
        excerpts = self._browse.excerpts
        if not rows.display or width < 2 or page is None:
            return
        excerpts.update(page)
        styles = tuple(self.role_styles.values())
        key = (listing.revision, excerpts.revision, order, width, styles)
        if key != self._drawn_list:
            self._drawn_list = key
            shown = sample_rows.columns(
                listing.fields, len(listing.facts), order, width
            )
            self._titles.set_strips(
                [self.inked(sample_rows.sample_heading(shown, order))]
            )
            # Later drawing uses the present state, since the listing goes on.
            facts = listing.facts
            visible = listing.visible
            scores = listing.scores
            groups = listing.groups
            rows.set_strips(
                LazyStrips(
                    len(visible),
                    lambda at: self.inked(
                        sample_rows.sample_row(
                            facts[visible[at]],
                            shown,
                            scores,
                            groups,
                            excerpt=excerpts.of(page, visible[at]),
                        )
                    ),
                )
            )
        at = listing.place_of(self._browse.index)
        if at != rows.chosen:
            rows.chosen = at
            if at is not None:
                rows.reveal(at)

    def _draw_sample(self) -> None:
        browse = self._browse
        if browse.index is None:
            words = "looking …"
            if browse.listing.complete:
                words = f"no sample matches, {self._clear} clears the filter"
            self._line.show([(words, "dim")])
            self._drawn_text = None
            self.text.show(None, {})
            return
        sample = browse.read()
        said = sample_words(
            browse.index, browse.fact, browse.listing, reading=sample is None
        )
        self._line.show(said, self._hit_words() if sample is not None else [])
        if sample is not None and self.text.display:
            self._draw_text(sample)

    def _hit_words(self) -> Pieces:
        shown = self.text.document
        if shown is None or shown.here is None:
            return []
        return [
            (f"hit {shown.hits.index(shown.here) + 1:,}/{len(shown.hits):,}", "accent")
        ]

    def _draw_text(self, sample: Sample) -> None:
        browse = self._browse
        width = self.text.width - 1
        height = self.text.size.height
        searches = browse.query.searches
        styles = tuple(self.role_styles.values())
        laid_by = (width, height, browse.folded, searches, browse.raw)
        key = (browse.shown, sample, laid_by, styles)
        if width > 0 and key != self._drawn_text:
            self._drawn_text = key
            before = self.text.document
            laid = Document(
                sample,
                width,
                height,
                folded=browse.folded,
                searches=searches,
                raw=browse.raw,
            )
            if (
                before is not None
                and before.sample is sample
                and before.here in laid.hits
            ):
                # it was laid out anew only, for another size or another fold
                laid.here = before.here
            self.text.show(laid, self.role_styles)

    def _draw_digest(self) -> None:
        rows = self.digest
        steps = self._browse.history is not None
        width = rows.width
        if width < 2 or self._browse.page is None:
            return
        chosen = self.item
        known = len(self._items)
        items = self._items = self._browse.items()
        rows.set_strips(
            LazyStrips(
                len(items),
                lambda at: self.inked(
                    response_rows.response_row(items[at](), width, with_step=steps)
                ),
            )
        )
        # further steps have been searched
        if chosen is not None and known != len(items):
            rows.chosen = self._index_of((chosen.place, chosen.row))
            rows.reveal(rows.chosen)
        if rows.chosen is None or rows.chosen >= len(items):
            rows.chosen = self._index_of(self._browse.shown) if items else None
            if rows.chosen is not None:
                rows.reveal(rows.chosen)
        if steps:
            self._draw_changes()

    def _draw_changes(self) -> None:
        """Draw the chosen response beside an earlier or later one."""
        rows = self.changes
        chosen = self.digest.chosen
        if not rows.display or rows.width < 2:
            return
        found = self._browse.changes(-1 if chosen is None else chosen)
        key = (found, rows.width, tuple(self.role_styles.values()))
        if key == self._drawn_changes:
            return
        self._drawn_changes = key
        if found is None:
            rows.set_strips(
                [self.inked([("no other step has this prompt yet", "dim")])]
            )
            return
        drawn = changed_words.change_rows(*found, rows.width - 1)
        rows.set_strips([self.inked(row) for row in drawn])

    def _index_of(self, shown: tuple[Place, int] | None) -> int:
        """Return the index of a sample among the responses, 0 if it is none of them."""
        items = [make() for make in self._items]
        places = [(item.place, item.row) for item in items]
        return places.index(shown) if shown in places else 0

    # -- what keys do here -------------------------------------------------------------------------

    @property
    def item(self) -> ResponseItem | None:
        """The response that is chosen."""
        at = self.digest.chosen
        if at is not None and at < len(self._items):
            return self._items[at]()
        return None

    @property
    def part(self) -> str | None:
        """The part of the sample at the top."""
        if self.text.document is not None:
            return self.text.document.part_at(self.text.scroll_offset.y)
        return None

    def scroll_to_top(self) -> None:
        """Show the sample from its beginning."""
        self.text.scroll_home(animate=False, immediate=True)

    def swap_responses(self) -> None:
        """Move the focus between the responses to a prompt and two of them side by side."""
        other = self.changes if self.digest.has_focus else self.digest
        if other.display:
            other.focus(scroll_visible=False)

    @on(Rows.Chosen, "#digest")
    def _response_chosen(self) -> None:
        if self._browse.history is not None:
            self._draw_changes()

    def take_turns(self) -> None:
        """Show the list of responses or one sample, whichever the browser is at, with the focus."""
        self.set_class(self._browse.responses, "-digest")
        self.set_class(self._browse.history is not None, "-history")
        self.digest.chosen = None
        (self.digest if self._browse.responses else self.text).focus(
            scroll_visible=False
        )

    def hit(self, by: int) -> bool:
        """Go to the next or previous hit in the sample, unfold what it is in; return whether there
        is any.
        """
        shown = self.text.document
        if shown is None or not shown.hits or self._browse.responses:
            return False
        at = 0 if by > 0 else -1
        if shown.here in shown.hits:
            at = shown.hits.index(shown.here) + by
        hit = shown.hits[at % len(shown.hits)]
        if shown.name_of(hit) in self._browse.folded:
            self._browse.fold(shown.name_of(hit))
            self._draw_sample()
            shown = self.text.document or shown
        shown.here = hit
        self.text.show(shown, self.role_styles)
        self.text.go_to(shown.row_of(hit))
        return True
