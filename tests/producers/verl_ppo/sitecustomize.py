"""Lets verl 0.6.1 and 0.9.1 train on a CPU: on PYTHONPATH every process loads it, those that Ray
starts too.

It replaces devices and the engine that generates. verl's trainer, loggers, dumps, checkpoints and
error paths are left as they are.
"""

from __future__ import annotations

import contextlib
import os
from importlib import import_module

from wrapt import when_imported

_GIB = 1 << 30


def _nothing(*_args, **_options):
    """Do what a device without queues and caches has to do."""


@when_imported("torch")
def _cpu_like_a_gpu(torch):
    """Give torch.cpu the functions that verl calls on any device's module."""
    answers = {"get_device_name": "CPU", "mem_get_info": (16 * _GIB, 32 * _GIB)}
    answers |= dict.fromkeys(("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved"), 0)  # fmt: skip
    answers |= dict.fromkeys(("empty_cache", "set_device", "reset_peak_memory_stats", "reset_accumulated_memory_stats"))  # fmt: skip
    made = {
        name: lambda *_, _answer=answer, **__: _answer
        for name, answer in answers.items()
    }
    made |= {"manual_seed": torch.manual_seed, "manual_seed_all": torch.manual_seed}
    made |= {
        "get_rng_state": lambda *_: torch.get_rng_state(),
        "set_rng_state": lambda s, *_: torch.set_rng_state(s),
    }
    for name, function in made.items():
        if not hasattr(torch.cpu, name):
            setattr(torch.cpu, name, function)
    _gloo(torch.distributed)


def _gloo(distributed):
    """Let processes talk by gloo whatever is asked for; a gathering of one is a copy, of whatever
    shape.
    """
    begin, gather = distributed.init_process_group, distributed.all_gather

    def all_gather(into, tensor, *args, **options):
        if len(into) > 1:
            return gather(into, tensor, *args, **options)
        into[0].copy_(tensor.reshape(into[0].shape))
        return None

    distributed.init_process_group = lambda backend=None, **options: begin(
        backend="gloo", **options
    )
    distributed.all_gather = all_gather


@when_imported("torch.distributed.fsdp")
def _no_offload(fsdp):
    """Nothing can be moved to the CPU that is there already."""
    fsdp.CPUOffload = _nothing


@when_imported("torch.distributed.fsdp._init_utils")
def _one_rank(utils):
    """Parameters on a CPU cannot be sent to other ranks: there are none."""
    utils._check_module_states_for_sync_module_states = _nothing


@when_imported("verl.workers.rollout.base")
def _engines(base):
    """Register what generates for a rollout called `hf`: within the trainer in 0.6, by a server in
    0.9.
    """
    base._ROLLOUT_REGISTRY["hf", "sync"] = "cpu_engine.Within"
    base._ROLLOUT_REGISTRY["hf", "async"] = "cpu_server.Client"


@when_imported("verl.workers.rollout.replica")
def _replicas(replica):
    """Register the server of 0.9 that starts where others start vLLM."""
    replica.RolloutReplicaRegistry.register(
        "hf", lambda: import_module("cpu_server").Replica
    )


@when_imported("verl.plugin.platform.platform_manager")
def _platform(manager):
    """Register a platform of 0.9 that is a CPU in all but its place in Ray, where it stands for a
    GPU.
    """
    import torch

    class First(str):
        """A device by its name, and the first one in `f"{name}:{device}"`."""

        def __format__(self, _spec):
            return "0"

    class Plain(manager.PlatformCUDA):
        device_name = vendor_name = "cpu"
        device_module = torch.cpu
        set_device = synchronize = set_allocator_settings = empty_cache = (
            profiler_start
        ) = profiler_stop = _nothing

        def is_available(self, *_args, **_options):
            return True

        is_platform_available = is_available

        def current_device(self):
            return First("cpu")

        def device_count(self):
            return 1

        def manual_seed(self, seed):
            torch.manual_seed(seed)

        manual_seed_all = manual_seed

        def get_device_capability(self, *_args):
            return None, None

        def communication_backend_name(self):
            return "gloo"

        def is_ipc_supported(self):
            return False

        def nvtx_range(self, *_args):
            return contextlib.nullcontext()

    manager.PlatformRegistry.register(platform="cpu-as-gpu")(Plain)
    os.environ |= {"VERL_PLATFORM": "cpu-as-gpu", "VERL_ENGINE_DEVICE": "cuda"}
