"""Runs without a fault, which no rule may speak of: noise of many kinds at healthy levels, and
healthy courses.

A null of a rule about levels has levels inside its band; one of a rule about courses has a course
that healthy runs have. A run that is what a rule says, such as a reward without a trend for
`plateau`, is no null of it: `SAYS_SO`.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from planted import OTHER, STATUS, TUTORIAL, VERL, batch, rows

from verl_tui.records import Event, EventKind, Settings
from verl_tui.runs.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

KINDS = ("stationary", "rising", "settling", "solved", "shuffled")
LENGTHS = (30, 60, 120, 250, 400)
"""Logged points."""
CADENCES = (1, 1, 5, 10)
"""Steps from one logged point to the next."""
BATCHES = (4, 8, 16, 32, 64, 128, 256, 512)
"""Prompts a step, each with one reward of 0 or 1."""
LEAST_BATCH = 32
"""Smaller batches of such rewards swing by their size alone, and hide a slow rise."""
OF_LARGE_BATCHES = {
    "reward-noisy/swings": ("tutorial",),
    "plateau": ("tutorial", "verl", "other"),
}
"""Rules that say so -> dialects in which they do not know better."""

SAYS_SO: Mapping[str, tuple[str, ...]] = {
    "plateau": ("stationary", "settling", "solved", "shuffled"),
    "nothing-learns/flat": ("stationary", "shuffled"),
    "reward-noisy/swings": ("shuffled",),
    "ref-kl-above-band/far": ("shuffled",),
    "first-step": ("shuffled", "solved"),
}
"""Rule -> kinds of runs that are what it says, and so no nulls of it: no trend, no gain, a reward
shuffled from 0.2 to 0.9, a KL that was reached while the reward rose and comes before it in a
shuffled run.
"""


@dataclass
class Null:
    """A run without a fault."""

    kind: str
    dialect: str
    chance: random.Random
    count: int
    """Logged points."""
    cadence: int
    batch: int
    columns: dict[str, list[float]] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    every: int = 5
    """Points from one validation to the next."""
    pace: float = 6.0
    """How many times over the run what is left to be learnt is divided by e."""
    spent: bool = False
    """Whether nothing is left to learn in most steps of a solved task."""
    stood: float = 0.5
    """How much a run that learns nothing more has learnt before it."""

    @property
    def steps(self) -> list[int]:
        """Steps of the logged points."""
        return list(
            range(
                self.cadence if self.cadence > 1 else 1,
                self.cadence * self.count + 1,
                self.cadence,
            )
        )

    def run(self) -> Run:
        """Return it as a run that has been read; of validations only every so many points."""
        run = Run("null")
        status = (
            STATUS._replace(format="tutorial JSONL")
            if self.dialect == "tutorial"
            else STATUS
        )
        rare = {
            key: values for key, values in self.columns.items() if is_validation(key)
        }
        dense = {key: values for key, values in self.columns.items() if key not in rare}
        records: list[Any] = [Settings(self.settings, "x")] if self.settings else []
        records.append(rows(dense, self.steps))
        if rare:
            some = {
                key: values[self.every - 1 :: self.every]
                for key, values in rare.items()
            }
            records.append(
                rows(some, self.steps[self.every - 1 :: self.every], order=self.count)
            )
        records.append(
            Event(EventKind.CHECKPOINT, "saved a checkpoint", 1, self.steps[-1])
        )
        run.apply(batch(*records, status=status), now=0.0)
        return run

    def seconds(self, place: int) -> float:
        """Return how long it took to a logged point, as the run logs it; a minute where it does
        not.
        """
        step = next(
            (
                self.columns[key][place]
                for key in ("timing_s/step", "step_time")
                if key in self.columns
            ),
            60.0,
        )
        return self.cadence * step

    def says_so(self, rule: str) -> bool:
        """Return whether the run is what a rule says, and so no null of it."""
        if rule == "no-signal/solved":
            return self.spent
        if self.batch < LEAST_BATCH and self.dialect in OF_LARGE_BATCHES.get(rule, ()):
            return True
        return self.kind in SAYS_SO.get(rule, ())

    # -- making courses ----------------------------------------------------------------------------

    def put(
        self,
        key: str,
        level: Callable[[float], float] | float,
        size: float,
        low: float,
        high: float,
    ) -> None:
        """Add a metric: its level over the run (0..1), with noise of that standard deviation, cut
        off at its ends.
        """
        last = max(1, self.count - 1)
        values = (
            level(i / last) if callable(level) else level for i in range(self.count)
        )
        noise = noises(self.chance, self.count)
        self.columns[key] = [
            min(high, max(low, value + size * one))
            for value, one in zip(values, noise, strict=True)
        ]

    def inside(self, low: float, high: float, *keys: str) -> None:
        """Add metrics that stay within a band: their noise is a third of the way to its nearer end
        at most.
        """
        for key in keys:
            level = low + self.chance.uniform(0.15, 0.85) * (high - low)
            room = min(level - low, high - level)
            self.put(
                key,
                level,
                self.chance.uniform(0.1, 1.0) * room / 3,
                -math.inf,
                math.inf,
            )

    def from_0(self, high: float, *keys: str) -> None:
        """Add metrics that are never below 0 and stay below a limit."""
        self.inside(0.0, high, *keys)
        for key in keys:
            self.columns[key] = [max(0.0, value) for value in self.columns[key]]

    def learnt(self, t: float) -> float:
        """Return how much of what is to be learnt has been learnt at a share of the run."""
        if self.kind == "stationary":
            return self.stood
        if self.kind == "rising":
            return t
        return 1.0 if self.kind == "solved" else 1 - math.exp(-self.pace * t)

    def course(
        self, key: str, begin: float, end: float, size: float, low: float = -math.inf
    ) -> None:
        """Add a metric that goes from one level to another as the run learns."""
        self.put(
            key, lambda t: begin + (end - begin) * self.learnt(t), size, low, math.inf
        )

    def shares(self, key: str, begin: float, end: float) -> None:
        """Add a mean of rewards that are 0 or 1."""
        last = max(1, self.count - 1)
        self.columns[key] = [
            _mean(
                self.chance, self.batch, begin + (end - begin) * self.learnt(i / last)
            )
            for i in range(self.count)
        ]


def is_validation(key: str) -> bool:
    """Return whether a metric is logged with each validation only."""
    return key.startswith(("val-core/", "eval_"))


def noises(chance: random.Random, count: int) -> list[float]:
    """Return noise of a standard deviation about 1: white, with memory, with heavy tails, in
    bursts.
    """
    how = chance.choice(("white", "memory", "tails", "bursts"))
    white = [chance.gauss(0.0, 1.0) for _ in range(count)]
    if how == "memory":
        memory = chance.uniform(0.3, 0.9)
        state = chance.gauss(0.0, 1.0)
        out = []
        for one in white:
            state = memory * state + math.sqrt(1 - memory * memory) * one
            out.append(state)
        return out
    if how == "tails":  # Student's t with four degrees of freedom
        return [
            one / math.sqrt(chance.gammavariate(2.0, 0.5)) / math.sqrt(2.0)
            for one in white
        ]
    if how == "bursts":
        wild = 0
        for i in range(count):
            wild = 5 if chance.random() < 0.03 else max(0, wild - 1)
            white[i] *= 2.2 if wild else 0.8
    return white


def _mean(chance: random.Random, count: int, share: float) -> float:
    return sum(chance.random() < share for _ in range(count)) / count


def _lognormal(null: Null, key: str, level: float, sigma: float) -> None:
    """Add a metric that is log-normal but for its furthest tails: an outlier of many times the
    level is no null.
    """
    noise = (min(3.5, max(-3.5, one)) for one in noises(null.chance, null.count))
    null.columns[key] = [level * math.exp(sigma * one) for one in noise]


# -- what runs log ---------------------------------------------------------------------------------


def _gradients(null: Null, key: str) -> None:
    """Gradient norms; of a solved task most are 0, and those of the few groups that still differ
    are as they were.
    """
    chance = null.chance
    level = math.exp(null.chance.uniform(math.log(0.02), math.log(2.0)))
    _lognormal(null, key, level, chance.uniform(0.1, 0.5))
    if null.kind == "solved":
        rest = chance.choice((0.0, 0.001 * level))
        share = chance.uniform(0.02, 0.4)
        null.columns[key] = [
            value if chance.random() < share else rest for value in null.columns[key]
        ]


def _rewards(null: Null, *keys: str) -> tuple[float, float]:
    """Rewards on one of several scales; return where they begin and end."""
    chance = null.chance
    scale = 0 if null.kind == "solved" else chance.randrange(3)
    if scale == 0:
        begin, end = (
            (0.97, chance.uniform(0.985, 1.0)) if null.kind == "solved" else (0.0, 0.0)
        )
        if null.kind != "solved":
            begin = chance.uniform(0.3, 0.5)
            end = chance.uniform(begin + 0.15, 0.95)
        null.shares(keys[0], begin, end)
    else:
        begin, end = (0.4, 2.6) if scale == 1 else (-5.0, -1.0)
        size = chance.uniform(0.01, 0.12) * (end - begin)
        null.course(keys[0], begin, end, size)
    for key in keys[1:]:
        null.columns[key] = [*null.columns[keys[0]]]
    return begin, end


def _policy(null: Null, entropy: str, length: str, reference_kl: str) -> None:
    """Entropy that falls as the run learns, length that grows, KL that is there while something is
    learnt.
    """
    chance = null.chance
    begin = chance.uniform(0.2, 3.0)
    end = begin * chance.uniform(0.3, 0.9)
    if null.kind == "solved":
        begin = end = chance.uniform(0.005, 0.05)
    null.course(entropy, begin, end, chance.uniform(0.01, 0.08) * end, 0.0)
    tokens = chance.uniform(50, 2000)
    null.course(
        length,
        tokens,
        tokens * chance.uniform(0.8, 1.8),
        chance.uniform(0.01, 0.08) * tokens,
        1.0,
    )
    if null.kind == "stationary":
        null.from_0(0.1, reference_kl)
    else:
        far = chance.uniform(0.01, 0.5)
        null.course(reference_kl, 0.001, far, chance.uniform(0.02, 0.15) * far, 0.0)


def _times(null: Null, whole: str, *parts: str) -> None:
    for key in parts:
        _lognormal(
            null, key, null.chance.uniform(2, 60), null.chance.uniform(0.02, 0.25)
        )
    null.columns[whole] = [
        3 + sum(values)
        for values in zip(*(null.columns[key] for key in parts), strict=True)
    ]


def _answers(null: Null, key: str, begin: float, end: float) -> None:
    """Validation on a thousand questions, whose answers vary from time to time."""
    if begin < 0 or end > 1:
        null.course(key, begin, end, 0.02 * (end - begin))
        return
    last = max(1, null.count - 1)
    levels = (begin + (end - begin) * null.learnt(i / last) for i in range(null.count))
    null.columns[key] = [_mean(null.chance, 1319, level) for level in levels]


def _samples(null: Null) -> None:
    """Figures of dumps: little repetition, groups with some spread; of a solved task most are all
    right.
    """
    count = null.chance.choice((4, 16, 64))
    null.columns["samples/groups"] = [float(count)] * null.count
    dead = 0.9 if null.kind == "solved" else null.chance.uniform(0.1, 0.4)
    null.columns["samples/dead_groups"] = [
        _mean(null.chance, count, dead) for _ in range(null.count)
    ]
    right = 1.0 if null.kind == "solved" else 0.5
    null.columns["samples/groups_all_right"] = [
        right * value for value in null.columns["samples/dead_groups"]
    ]
    null.columns["samples/groups_all_wrong"] = [
        (1 - right) * value for value in null.columns["samples/dead_groups"]
    ]
    null.from_0(0.2, "samples/repetition")
    null.inside(0.75, 1.0, "samples/ngram_entropy")
    null.inside(0.5, 0.9, "samples/distinct_2")


def _percent(
    null: Null, low: float, high: float, key: str, whole: float = 100.0
) -> None:
    null.inside(low * whole / 100, high * whole / 100, key)
    null.columns[key] = [min(whole, value) for value in null.columns[key]]


def _devices(null: Null) -> None:
    for i in range(null.chance.choice((2, 8))):
        _percent(null, 60.0, 100.0, f"system/gpu.{i}.gpu")
        _percent(null, 40.0, 90.0, f"system/gpu.{i}.memoryAllocated")


def _host(null: Null, key: str) -> None:
    """Memory of the host that fills up at the start and then stays."""
    level = null.chance.uniform(60, 600)
    null.put(
        key,
        lambda t: level * (1 - 0.3 * math.exp(-40 * t)),
        0.01 * level,
        0.0,
        math.inf,
    )


def _verl(null: Null) -> None:
    chance = null.chance
    constant = {**VERL, "actor/lr": 1e-6}
    v1, asynchronous, target = (chance.random() < 0.4 for _ in range(3))
    begin, end = _rewards(null, "critic/score/mean", "critic/rewards/mean")
    _answers(null, "val-core/openai/gsm8k/acc/mean@1", begin, end)
    _policy(null, "actor/entropy", "response_length/mean", "actor/kl_loss")
    _gradients(null, "actor/grad_norm")
    null.spent = null.kind == "solved" and chance.random() < 0.5
    alive = [
        null.kind != "solved" or chance.random() < (0.2 if null.spent else 0.95)
        for _ in range(null.count)
    ]
    null.columns["critic/advantages/max"] = [
        chance.uniform(1, 3) if one else 0.0 for one in alive
    ]
    null.columns["critic/advantages/min"] = [
        -chance.uniform(1, 3) if one else 0.0 for one in alive
    ]
    null.put("reward_extra/format/mean", chance.uniform(0.8, 0.99), 0.01, 0.0, 1.0)
    _answers(null, "reward_extra/answer/mean", begin, end)
    null.put("actor/pg_loss", 0.0, chance.uniform(0.001, 0.08), -math.inf, math.inf)
    if chance.random() < 0.5:
        null.put(
            "actor/ppo_kl", 0.0, chance.uniform(0.0001, 0.002), -math.inf, math.inf
        )
    else:
        null.from_0(0.1, "actor/ppo_kl")
    null.from_0(0.3, "actor/pg_clipfrac")
    null.from_0(0.01, "training/rollout_probs_diff_mean")
    _engine(null, asynchronous=asynchronous)
    null.inside(-0.2, 0.9, "critic/vf_explained_var")
    null.columns["critic/vf_explained_var"] = [
        abs(one) for one in null.columns["critic/vf_explained_var"]
    ]
    constant["vllm:corrupted_requests"] = 0.0
    null.columns["response/aborted_ratio"] = [
        0.01 * (chance.random() < 0.1) for _ in range(null.count)
    ]
    _cuts(null, "response_length", v1=v1)
    _cuts(null, "prompt_length", v1=v1)
    if v1:
        constant["training/num_turns/mean"] = 2.0
    if asynchronous:
        stale = (0, 1, 1, 2, 3, 4, 7)
        null.columns["training/off_policy/trajectory_staleness/max"] = [
            float(chance.choice(stale)) for _ in range(null.count)
        ]
        null.inside(
            0.05,
            0.4,
            "fully_async/rollouter/idle_ratio",
            "fully_async/trainer/idle_ratio",
        )
    if target:
        null.settings |= {
            "algorithm.kl_ctrl.type": "adaptive",
            "algorithm.kl_ctrl.target_kl": 0.1,
        }
        null.from_0(0.2, "actor/kl_loss")
    if chance.random() < 0.5:
        null.settings["algorithm.rollout_correction.rollout_is"] = "sequence"
    _times(
        null, "timing_s/step", "timing_s/gen", "timing_s/update_actor", "timing_s/ref"
    )
    _lognormal(null, "perf/total_num_tokens", 1e6, 0.05)
    _host(null, "perf/cpu_memory_used_gb")
    _samples(null)
    if chance.random() < 0.4:
        _percent(null, 60.0, 100.0, "gpu_util")
    else:
        _devices(null)
    null.columns |= {key: [value] * null.count for key, value in constant.items()}


def _engine(null: Null, *, asynchronous: bool) -> None:
    """How far the rollout engine is from the trainer."""
    chance = null.chance
    null.inside(0.9, 1.0, "training/rollout_actor_probs_pearson_corr")
    place = chance.choice(("", "actor/"))
    # The weight of a whole response is that of its tokens together: at 20 and more it is a fault by
    # itself.
    tokens = max(null.columns["response_length/mean"])
    null.from_0(
        min(0.1 if asynchronous or place else 0.001, 15.0 / tokens),
        f"{place}rollout_corr/kl",
    )
    null.inside(0.5, 2.0, f"{place}rollout_corr/rollout_is_mean")
    null.inside(0.3, 1.0, f"{place}rollout_corr/rollout_is_eff_sample_size")
    null.from_0(
        1.0, f"{place}rollout_corr/rollout_is_std", f"{place}rollout_corr/chi2_token"
    )
    null.from_0(
        chance.choice((0.1, 0.5)), f"{place}rollout_corr/rollout_rs_masked_fraction"
    )


def _cuts(null: Null, what: str, *, v1: bool) -> None:
    """The share of what is cut at a limit; verl's v1 trainer has that of the longest in the batch
    instead.
    """
    limit = null.settings[f"data.max_{what}"] = null.chance.choice((1024, 4096))
    reached = not v1 or null.chance.random() < 0.5
    null.from_0(0.1 if reached else 0.9, f"{what}/clip_ratio")
    null.columns[f"{what}/max"] = [
        float(limit) if reached else 0.7 * limit
    ] * null.count


def _tutorial(null: Null) -> None:
    chance = null.chance
    spread = chance.random() < 0.6
    unit = chance.random() < 0.3
    if null.kind == "solved" or unit:
        begin, end = (
            (0.98, 0.98)
            if null.kind == "solved"
            else (chance.uniform(0.3, 0.5), chance.uniform(0.65, 0.95))
        )
        null.shares("reward/mean", begin, end)
    else:
        begin = chance.uniform(1.2, 2.0)
        end = chance.uniform(2.8, 3.8)
        null.course("rollout/reward_mean", begin, end, chance.uniform(0.02, 0.3))
        if null.kind == "stationary":
            null.inside(1.2, 4.0, "rollout/reward_mean")
        if spread:
            null.put(
                "rollout/reward_std", chance.uniform(0.2, 0.5), 0.03, 0.0, math.inf
            )
    if null.kind == "settling" and chance.random() < 0.5:
        null.settings |= {
            "kl_controller": "adaptive",
            "target_kl": 0.05,
            "kl_coef": 0.02,
        }
    null.inside(0.005, 0.1, "rollout/kl_div")
    null.inside(0.01, 0.1, "kl/divergence")
    null.inside(-0.5, 0.0, "ppo/policy_loss")
    null.put("ppo/value_loss", 0.4, 0.05, 0.0, math.inf)
    begin = chance.uniform(0.3, 2.0)
    null.course(
        "ppo/entropy", begin, begin * chance.uniform(0.4, 0.9), 0.02 * begin, 0.0
    )
    null.put("reward_components/format", chance.uniform(0.8, 0.99), 0.01, 0.0, 1.0)
    _answers(null, "reward_components/answer", begin, end)
    null.from_0(0.3, "ppo/clip_ratio")
    _gradients(null, "ppo/grad_norm")
    null.inside(400.0, 520.0, "rollout/response_length_mean")
    whole = chance.choice((100.0, 1.0))
    if chance.random() < 0.6:
        _percent(null, 60.0, 100.0, "system/gpu_util", whole)
        _percent(null, 40.0, 90.0, "system/memory_util", whole)
    else:
        _devices(null)
    _samples(null)
    null.columns |= {key: [value] * null.count for key, value in TUTORIAL.items()}


def _other(null: Null) -> None:
    chance = null.chance
    begin, end = _rewards(null, "reward", "rewards/accuracy_reward/mean")
    _answers(null, "eval_reward", begin, end)
    null.put("rewards/format_reward/mean", chance.uniform(0.8, 0.99), 0.01, 0.0, 1.0)
    null.put("reward_std", 0.3, 0.03, 0.0, math.inf)
    groups = max(2, null.batch // 8)
    dead = 0.9 if null.kind == "solved" else chance.uniform(0.05, 0.45)
    null.columns["frac_reward_zero_std"] = [
        _mean(chance, groups, dead) for _ in range(null.count)
    ]
    null.put("loss", 0.0, chance.uniform(0.001, 0.08), -math.inf, math.inf)
    _policy(null, "entropy", "completions/mean_length", "kl")
    null.put("ppo_kl", 0.0, 0.001, -math.inf, math.inf)
    if chance.random() < 0.5:
        null.from_0(0.1, "ppo_kl")
    _gradients(null, "grad_norm")
    null.from_0(0.3, "clip_ratio/region_mean")
    null.from_0(0.1, "completions/clipped_ratio")
    null.from_0(0.001, "gen_kl_error")
    null.put(
        "token_mult_prob_error", chance.uniform(1.004, 1.012), 0.002, 1.0, math.inf
    )
    _lognormal(null, "step_time", chance.uniform(5, 60), chance.uniform(0.02, 0.2))
    if chance.random() < 0.6:
        _percent(null, 60.0, 100.0, "gpu_util")
        _percent(null, 40.0, 90.0, "memory_util")
    else:
        _devices(null)
    if chance.random() < 0.3:
        null.settings |= {"kl_controller": "adaptive", "target_kl": 0.1}
        null.from_0(0.2, "kl")
    null.put("objective/kl", chance.uniform(0, 8), 0.5, -1.5, math.inf)
    constant = {**OTHER, "learning_rate": 1e-6, "vllm:corrupted_requests": 0.0}
    null.columns = {
        key: [value] * null.count for key, value in constant.items()
    } | null.columns


_DIALECTS = {"verl": _verl, "tutorial": _tutorial, "other": _other}


def _leave_out(null: Null) -> None:
    """Take away what some logs lack: the KL of a run without a reference, or the reward; warm the
    rate up from 0.
    """
    lacks = null.chance.random()
    if lacks < 0.15:
        null.columns.pop("actor/kl_loss", None)
        null.columns.pop("kl", None)
    elif lacks < 0.3 and null.kind != "solved":  # which nothing but the reward tells
        parts = [
            key
            for key in null.columns
            if key.startswith(("critic/score", "critic/rewards", "reward"))
        ]
        null.columns = {
            key: values for key, values in null.columns.items() if key not in parts
        }
    warm = null.chance.choice((0, 1, 3))
    for key in ("actor/lr", "learning_rate"):
        if key in null.columns:
            null.columns[key] = [0.0] * min(warm, null.count) + null.columns[key][warm:]


def draw(kind: str, dialect: str, seed: int) -> Null:
    """Return a run of a kind in some dialect's names."""
    chance = random.Random(f"{kind} {dialect} {seed}")
    null = Null(
        kind,
        dialect,
        chance,
        chance.choice(LENGTHS),
        chance.choice(CADENCES),
        chance.choice(BATCHES),
    )
    null.pace, null.stood = chance.uniform(3.0, 12.0), chance.uniform(0.3, 1.0)
    null.every = chance.choice((2, 5, 10))
    _DIALECTS[dialect](null)
    if dialect != "tutorial":
        _leave_out(null)
    if kind == "shuffled":
        order = list(range(null.count))
        chance.shuffle(order)
        null.columns = {
            key: [values[i] for i in order] for key, values in null.columns.items()
        }
    return null
