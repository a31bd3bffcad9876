"""The phase in which a run failed, by the functions that its traceback names.

A traceback lists calls from the outermost inwards. The first one whose name says what the trainer
does tells most: what generates within a validation fails in the validation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.records import Phase
from verl_tui.text import one_line

if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

WORDS = ('File "', "ray::", "_wg.", "rollout_manager.")
"""Every line that names a call contains one of these."""
_FRAME = pattern(
    rb'^\s*File "(?P<path>[^"]{1,400})", line (?P<line>\d{1,9}), in (?P<name>\w+|<module>)'
)
_OF_OTHERS = pattern(rb"[/-]packages/|/lib/python\d|<")
"""Files that users did not write."""
_REMOTE = pattern(
    rb"\bray::(?:\w+\.)?(?:(?:actor_rollout_ref|actor_rollout|rollout|actor|critic|ref)_)?"
    rb"(?P<name>\w+)\("
)
"""Ray's name for a call of another process; verl puts the worker's roles before the function."""
_GROUP = pattern(rb"^\s[^#\"']*(?:_wg|rollout_manager)\.(?P<name>\w+)\(")
"""verl's call of a group of workers, as the source line below a frame has it."""

_TRAINERS = rb"/(?:verl|trl|swift|llamafactory|recipe)/|trainer\w{0,40}\.py$"
"""Files in which functions with common names are a trainer's."""
_INSTALLED = b"site-packages"
"""Parts of a path above this are the user's folders, not the library."""
_PhaseTable = tuple[tuple[str, bytes, bytes], ...]
_CLEAR: _PhaseTable = (
    ("validating", rb"_?validate|_?evaluate|evaluation_loop|_eval\w*", _TRAINERS),
    (
        "saving a checkpoint",
        rb"_?save_(?:checkpoint|model|pretrained|optimizer_and_scheduler)",
        b"",
    ),
    (
        "loading a checkpoint",
        rb"_?load_(?:checkpoint|from_checkpoint|optimizer_and_scheduler)",
        b"",
    ),
    (
        "loading the tokenizer",
        rb"from_pretrained",
        rb"/token\w*\.py$|/processing_\w+\.py$",
    ),
    ("loading the model's settings", rb"from_pretrained", rb"/configuration_\w+\.py$"),
    ("loading the model", rb"from_pretrained|_load_pretrained_model", b""),
    (
        "loading the model",
        rb"init_model|_?build_model\w*|load_model|create_model\w*",
        b"",
    ),
    (
        "loading the data",
        rb"_?create_(?:dataloader|dataset|rl_dataset)\w*|load_dataset",
        b"",
    ),
    (
        "loading the data",
        rb"get_train_dataloader|_read_files_and_tokenize|_next_data",
        b"",
    ),
    (
        "passing weights to the rollout engine",
        rb"_?move_(?:full_)?(?:model|adapter)_to_vllm|_?sync_(?:model_|rollout_)?weights"
        rb"|update_weights\w*",
        b"",
    ),
    ("computing advantages", rb"_?compute_advantages?", b""),
    (
        "scoring responses",
        rb"_?compute_(?:rewards?|rm_score|score)\w*|_?calculate_rewards|_?score_completions"
        rb"|reward_fn",
        b"",
    ),
    ("scoring responses", rb"\w+", rb"/reward_(?:manager|score|loop)s?\b"),
    (
        "computing log-probabilities",
        rb"_?compute_(?:old_|ref_)?log_probs?|_get_per_token_logps\w*",
        b"",
    ),
    ("computing values", rb"_?compute_values", b""),
    (
        "generating responses",
        rb"generate_(?:sequences|single_turn|completions|rollout)s?|_generate_single_turn",
        b"",
    ),
    (
        "generating responses",
        rb"_?generate|chat",
        rb"/vllm/|/sglang/|/transformers/|" + _TRAINERS,
    ),
    ("updating the critic", rb"_?update_critic", b""),
    ("updating the policy", rb"_?update_(?:actor|policy)", b""),
    (
        "starting Ray",
        rb"\w+",
        rb"/ray/_private/(?:node|services|resource_and_label_spec)\.py$",
    ),
    (
        "starting the rollout engine",
        rb"\w+",
        rb"/vllm/v1/engine/core\.py$|/llm_engine\.py$",
    ),
)
"""Phases by the functions of verl 0.3 to 0.9, TRL 0.14 to 1.16, ms-swift 4 and transformers: words,
the form of their names, and that of their paths where the name alone is too common.
"""
_VAGUE: _PhaseTable = (
    (
        "starting the rollout engine",
        rb"init_rollout|_build_rollout|init_engine|_prepare_vllm\w*",
        b"",
    ),
    ("starting the workers", rb"init_workers|_?init_worker_groups?", b""),
    ("generating or scoring responses", rb"_generate_and_score_completions", b""),
    ("running a callback", rb"call_event", rb"/trainer_callback\.py$"),
    (
        "updating the weights",
        rb"training_step|_?compute_loss|_?optimizer_step|backward",
        b"",
    ),
)
"""Functions that call some of the above: if none of those is named, the innermost of these
counts.
"""


def _compiled(
    table: _PhaseTable,
) -> Sequence[tuple[str, re.Pattern[bytes], re.Pattern[bytes]]]:
    return [(words, pattern(names), pattern(paths)) for words, names, paths in table]


_BY_CLEAR = _compiled(_CLEAR)
_BY_VAGUE = _compiled(_VAGUE)


class PhaseReader:
    """Reads the lines of one traceback at a time."""

    def __init__(self) -> None:
        self.begin()

    @property
    def phase(self) -> Phase | None:
        """The phase of the run, None if no function shows it."""
        return self._clear or self._vague

    def begin(self) -> None:
        """Forget the traceback before."""
        self._clear: Phase | None = None
        self._vague: Phase | None = None
        self.frame = ""
        """The innermost call outside installed packages: `score() in reward.py:31`."""

    def read(self, part: bytes) -> None:
        """Note a line of the traceback."""
        frame = _FRAME.match(part)
        if frame is not None:
            self._note(frame["path"].rpartition(_INSTALLED)[2], frame["name"])
            if not _OF_OTHERS.search(frame["path"]):
                place = _place(frame["path"], frame["name"]).removeprefix(
                    "<module>() in "
                )
                self.frame = f"{place}:{int(frame['line'])}"
        elif (call := _GROUP.match(part)) is not None:
            self._note(b"", call["name"])
        else:
            for call in _REMOTE.finditer(part):
                self._note(b"", call["name"])

    def _note(self, path: bytes, name: bytes) -> None:
        """Note a call, by its file, where it is known, and its function."""
        self._clear = self._clear or _found(_BY_CLEAR, path, name)
        self._vague = _found(_BY_VAGUE, path, name) or self._vague


def _place(path: bytes, name: bytes) -> str:
    """Name a function and its file, without folders."""
    file = path.rpartition(b"/")[2]
    where = b"%s() in %s" % (name, file) if file else b"%s()" % name
    return one_line(where.decode("utf-8", "replace"), 80)


def _found(
    table: Sequence[tuple[str, re.Pattern[bytes], re.Pattern[bytes]]],
    path: bytes,
    name: bytes,
) -> Phase | None:
    for words, names, paths in table:
        if names.fullmatch(name) and paths.search(path):
            return Phase(words, _place(path, name))
    return None
