"""The parts of the benchmark, in the order in which they run."""

from __future__ import annotations

from measuring import Part

from parts import (
    cores,
    first_frame,
    keys,
    live,
    loading,
    many_runs,
    screen,
    start,
    tensorboard,
    wandb_run,
)

PARTS = (
    Part("first-frame", first_frame.measure),
    Part("file-logger", loading.file_logger),
    Part("batch-keys", loading.batch_keys),
    Part("console", loading.console),
    Part("wandb", wandb_run.measure),
    Part("tensorboard", tensorboard.measure),
    Part("many-runs", many_runs.small_runs),
    Part("long-runs", many_runs.long_runs, large=True),
    Part("cores", cores.measure),
    Part("live", live.measure),
    Part("keys", keys.measure),
    Part("start", start.screen),
    Part("commands", start.commands),
    Part("loop", screen.loop),
    Part("judging", loading.judging),
    Part("latency", screen.latency),
    Part("link", screen.link),
    Part("idle", screen.idle),
)
