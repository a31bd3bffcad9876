"""The run died: the line that says so, and what usually helps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from verl_tui.health.diagnoses.diagnosis import Diagnosis
from verl_tui.health.finding import Finding, NotJudged
from verl_tui.runs.state import State
from verl_tui.text import one_line

if TYPE_CHECKING:
    from verl_tui.health.moment import Moment
    from verl_tui.records import Event
    from verl_tui.runs.run import Run

# In the order of trying: vLLM's advice before the general one for memory.
_ADVICE: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), advice)
    for pattern, advice in (
        (
            r"No available memory for the cache blocks",
            "vLLM found no room for its cache: raise actor_rollout_ref.rollout.gpu_memory_utilization, or free memory "
            "before the engine starts (offload, a smaller model or tensor parallelism).",
        ),
        (
            r"EngineDeadError|EngineCore",
            "The inference engine died: the cause stands above this line in its own log, often memory.",
        ),
        (
            r"CUDA out of memory|torch(?:\.cuda)?\.OutOfMemoryError",
            "GPU memory ran out: lower the micro-batch size or max_token_len_per_gpu, lower gpu_memory_utilization of "
            "the rollout, turn on offload or gradient checkpointing.",
        ),
        (
            r"ray\.exceptions\.OutOfMemoryError|node running low on memory",
            "The host's memory ran out: look at actor/perf/cpu_memory_used_gb; fewer data workers, less offload to "
            "the CPU, more memory for the node.",
        ),
        (
            r"Watchdog caught collective operation timeout|ProcessGroupNCCL|NCCL error",
            "A collective operation timed out: one rank hung or died before. Look for the first rank that fell silent; "
            "a longer nccl_timeout helps only if that rank was slow.",
        ),
        (
            r"illegal memory access|CUDA error|device-side assert",
            "A CUDA kernel failed: run again with CUDA_LAUNCH_BLOCKING=1; check the driver and the GPU (Xid in dmesg).",
        ),
        (
            r"Total available GPUs .* is less than",
            "Ray sees fewer GPUs than the settings ask for: compare n_gpus_per_node × nnodes with `ray status`.",
        ),
        (
            r"ActorDiedError|RayActorError|WorkerCrashedError|NodeDiedError",
            "A Ray worker died: its own log (/tmp/ray/session_latest/logs/worker-*.err) and dmesg tell why, often the "
            "host's memory.",
        ),
        (
            r"All samples are aborted",
            "The rollout engine aborted every response: look at its log for time-outs and memory.",
        ),
        (
            r"is not JSON serializable",
            "verl's file logger of v0.6.0–v0.7.0 cannot write NumPy numbers: update to v0.7.1 or later.",
        ),
        (
            r"Error executing job with overrides|HYDRA_FULL_ERROR",
            "Hydra ended the job: set HYDRA_FULL_ERROR=1 for the whole trace; the cause stands above this line.",
        ),
        (r"RayTaskError", "A Ray task failed: the exception's own message stands at the end of the traceback."),
    )
)
_OTHERWISE = "Read the log from this line upwards: the first error names the cause, what follows is the wreckage."


class Crash(Diagnosis):
    """A traceback or a fatal message, and no step after it."""

    alive = True  # a traceback alone means something only after some silence
    sentences = True

    def judge(self, moment: Moment) -> Finding | NotJudged | None:
        """Tell how the run crashed, if it did."""
        run, event = moment.run, moment.run.outcome
        if moment.state is not State.CRASHED or event is None:
            self.remember(None, run.step)
            return None if run.events else NotJudged(self.rule.id, "no source tells of the run's life")
        finding = self._finding(run, event)
        self.remember(finding, finding.step)
        return finding

    def _finding(self, run: Run, event: Event) -> Finding:
        text = one_line(event.text)
        step = event.step if event.step is not None else run.step
        where = "before the first step" if step is None else f"at step {step}"
        related = [other for other in run.events if other.kind is event.kind and other.line != event.line]
        evidence = [f"line {event.line}: {text}"]
        evidence += [f"line {other.line}: {one_line(other.text, 120)}" for other in related[-3:]]
        evidence.append("no step came after it")
        return Finding(
            self.rule.id,
            self.rule.severity,
            f"the run crashed {where}: {text}",
            step=step,
            since_step=step,
            evidence=tuple(evidence),
            advice=advice(" ".join(other.text for other in (event, *related))),
            source=self.rule.source,
        )


def advice(text: str) -> str:
    """Return what usually helps against an error."""
    return next((words for pattern, words in _ADVICE if pattern.search(text)), _OTHERWISE)
