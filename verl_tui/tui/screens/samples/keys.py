"""Keys of the samples screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.binding import Binding

if TYPE_CHECKING:
    from textual.binding import BindingType

SAMPLES_KEYS: list[BindingType] = [
    Binding("n", "sample(1)", "Next sample", key_display="n p", id="samples.next"),
    Binding("p", "sample(-1)", "Previous sample", show=False, id="samples.previous"),
    Binding("N", "step(1)", "Older step", key_display="N P", id="samples.older"),
    Binding("P", "step(-1)", "Newer step", show=False, id="samples.newer"),
    Binding("slash", "filter", "Filter, search", key_display="/", id="samples.filter"),
    Binding("s", "sort", "Sort", id="samples.sort"),
    Binding("S", "turn", "Sort the other way round", show=False, id="samples.turn"),
    Binding("escape", "back", "Back", key_display="esc", id="samples.back"),
    Binding("a", "mates", "Same prompt", id="samples.mates"),
    Binding("h", "history", "Other steps", id="samples.history"),
    Binding(
        "b", "extreme('best')", "Best listed sample", show=False, id="samples.best"
    ),
    Binding(
        "w", "extreme('worst')", "Worst listed sample", show=False, id="samples.worst"
    ),
    Binding("full_stop", "hit(1)", "Next hit", show=False, id="samples.next_hit"),
    Binding("comma", "hit(-1)", "Previous hit", show=False, id="samples.previous_hit"),
    Binding("tab,shift+tab", "swap", "List or sample", show=False, id="samples.swap"),
    Binding(
        "enter",
        "enter",
        "Open; in a sample: fold the part at the top",
        show=False,
        id="samples.enter",
    ),
    Binding(
        "u,1",
        "fold('prompt')",
        "Fold or unfold the prompt",
        show=False,
        id="samples.unfold",
    ),
    Binding(
        "2",
        "fold('response')",
        "Fold or unfold the response",
        show=False,
        id="samples.fold_response",
    ),
    Binding(
        "3",
        "fold('truth')",
        "Fold or unfold the ground truth",
        show=False,
        id="samples.fold_truth",
    ),
    Binding(
        "4",
        "fold('fields')",
        "Fold or unfold the fields",
        show=False,
        id="samples.fold_fields",
    ),
    Binding(
        "R", "raw", "Raw text, without margin and colours", show=False, id="samples.raw"
    ),
    Binding("v", "kind", "Training or validation", id="samples.kind"),
    Binding("f", "follow", "Follow", id="samples.follow"),
    Binding("y", "copy(False)", "Copy the sample", show=False, id="samples.copy"),
    Binding(
        "Y", "copy(True)", "Copy the response", show=False, id="samples.copy_response"
    ),
    Binding(
        "x",
        "export(False)",
        "Write the sample to a file",
        show=False,
        id="samples.export",
    ),
    Binding(
        "X",
        "export(True)",
        "Write all listed samples to a file",
        show=False,
        id="samples.export_all",
    ),
    Binding("q,o", "leave", "Back to the dashboard", show=False, id="samples.leave"),
]
