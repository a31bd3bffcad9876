"""Diagnoses: failures that no single threshold shows. A class each, a line here, an entry in
`guide.toml`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.health.diagnoses.component_imbalance import (
    ComponentImbalance,
    NeverScored,
)
from verl_tui.health.diagnoses.dead_groups import DeadGroups
from verl_tui.health.diagnoses.disk_filling import DiskFilling
from verl_tui.health.diagnoses.ends import Crash, EndedEarly
from verl_tui.health.diagnoses.engine_mismatch import EngineMismatch
from verl_tui.health.diagnoses.entropy import EntropyCollapse, EntropyExplosion
from verl_tui.health.diagnoses.first_step import FirstStep
from verl_tui.health.diagnoses.gpu_uneven import GpuUneven
from verl_tui.health.diagnoses.hang import Hang
from verl_tui.health.diagnoses.host_memory import HostMemory
from verl_tui.health.diagnoses.length import LengthCollapse, LengthExplosion
from verl_tui.health.diagnoses.not_finite import NotFinite
from verl_tui.health.diagnoses.nothing_learns import NothingLearns
from verl_tui.health.diagnoses.one_phase import OnePhase
from verl_tui.health.diagnoses.plateau import Plateau
from verl_tui.health.diagnoses.policy_collapse import PolicyCollapse
from verl_tui.health.diagnoses.repetition import Repetition
from verl_tui.health.diagnoses.restarts import RestartNotice, ResumeLost
from verl_tui.health.diagnoses.reward_hacking import RewardHacking
from verl_tui.health.diagnoses.slow_phase import SlowPhase
from verl_tui.health.diagnoses.weights_not_synced import WeightsNotSynced
from verl_tui.health.diagnoses.worker_errors import WorkerErrors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from verl_tui.health.diagnoses.diagnosis import Diagnosis

DIAGNOSES: Mapping[str, type[Diagnosis]] = {
    "crash": Crash,
    "ended-early": EndedEarly,
    "policy-collapse": PolicyCollapse,
    "hang": Hang,
    "not-finite": NotFinite,
    "first-step": FirstStep,
    "weights-not-synced": WeightsNotSynced,
    "entropy-explosion": EntropyExplosion,
    "entropy-collapse": EntropyCollapse,
    "reward-hacking": RewardHacking,
    "length-explosion": LengthExplosion,
    "length-collapse": LengthCollapse,
    "repetition": Repetition,
    "dead-groups": DeadGroups,
    "component-imbalance": ComponentImbalance,
    "component-imbalance/never-scored": NeverScored,
    "engine-mismatch": EngineMismatch,
    "slow-phase": SlowPhase,
    "one-phase": OnePhase,
    "host-memory": HostMemory,
    "disk-filling": DiskFilling,
    "worker-errors": WorkerErrors,
    "gpu-uneven": GpuUneven,
    "nothing-learns/flat": NothingLearns,
    "plateau": Plateau,
    "resume-lost": ResumeLost,
    "restart": RestartNotice,
}
"""Unique name of its rule -> diagnosis, in the order of showing. Each reads its figures from its
entry in `guide.toml`.
"""
