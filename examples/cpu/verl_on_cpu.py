# SPDX-License-Identifier: Apache-2.0
"""Lets verl 0.5.0 to 0.9.1 train on machines without an accelerator.

Only what belongs to the device is exchanged: nccl for gloo, flash attention for sdpa, memory statistics and pinned
memory for nothing, an AVG all-reduce for SUM and a division, and for verl >= 0.7 the inference engine for
`rollout.name=hfcpu` (cpu_rollout.py). One bug is fixed too, with the reason beside it. Data, trainer,
advantages, losses, optimiser, FSDP, checkpoints, resume, loggers and placement by Ray stay verl's own. Where torch
sees a GPU nothing at all happens.

A module is patched right after it was imported, so no process imports what it would not have imported anyway.
"""

import importlib.machinery
import sys

import torch

PATCHES = {}


def patch(module):
    """The decorated function is called with the module as soon as that has been imported."""

    def remember(function):
        PATCHES[module] = function
        return function

    return remember


class PatchingFinder:
    """Finds a module as Python does, and has its patch run at the end of the import."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        function = PATCHES.get(name)
        spec = importlib.machinery.PathFinder.find_spec(name, path) if function else None
        if spec is None or spec.loader is None:
            return None
        inner = spec.loader.exec_module

        def exec_and_patch(module):
            inner(module)
            function(module)

        spec.loader.exec_module = exec_and_patch
        return spec


def nothing(*args, **kwargs):
    return None


def zero(*args, **kwargs):
    return 0


# ---- torch -------------------------------------------------------------------------------------------------------


def patch_torch_cpu():
    """torch.cpu lacks what verl asks every device module for."""
    statistics = "memory_allocated memory_reserved max_memory_allocated max_memory_reserved reset_peak_memory_stats"
    for name in [*statistics.split(), "empty_cache", "ipc_collect"]:
        setattr(torch.cpu, name, zero)
    torch.cpu.mem_get_info = lambda *args: (0, 0)
    torch.cpu.get_device_name = lambda *args: "CPU"
    torch.cpu.manual_seed = torch.cpu.manual_seed_all = torch.manual_seed
    torch.cpu.get_rng_state = lambda *args: torch.get_rng_state()
    torch.cpu.set_rng_state = lambda state, *args: torch.set_rng_state(state)
    torch.Tensor.pin_memory = lambda self, *args, **kwargs: self


def patch_torch_distributed():
    import torch.distributed as dist
    from torch.distributed.fsdp import _init_utils

    init, reduce = dist.init_process_group, dist.all_reduce

    def init_gloo(backend=None, *args, **kwargs):
        kwargs.pop("device_id", None)
        return init("gloo", *args, **kwargs)

    def reduce_without_avg(tensor, op=dist.ReduceOp.SUM, group=None, async_op=False):
        if op != dist.ReduceOp.AVG:
            return reduce(tensor, op=op, group=group, async_op=async_op)
        reduce(tensor, op=dist.ReduceOp.SUM, group=group)
        tensor.div_(dist.get_world_size(group))
        return None

    for module in (dist, dist.distributed_c10d):
        module.init_process_group, module.all_reduce = init_gloo, reduce_without_avg
    # FSDP refuses to broadcast the parameters of a module that is not on an accelerator; gloo can
    _init_utils._check_module_states_for_sync_module_states = nothing


@patch("transformers.modeling_utils")
def attention(module):
    """Several verl versions ask for flash attention in their code, whatever the configuration says."""
    choose = module.PreTrainedModel._check_and_adjust_attn_implementation

    def choose_sdpa(self, implementation, *args, **kwargs):
        wanted = "sdpa" if implementation == "flash_attention_2" else implementation
        return choose(self, wanted, *args, **kwargs)

    module.PreTrainedModel._check_and_adjust_attn_implementation = choose_sdpa


# ---- verl: device ------------------------------------------------------------------------------------------------


@patch("verl.utils.device")
def backend_name(module):
    module.get_nccl_backend = lambda: "gloo"


@patch("verl.utils.fsdp_utils")
def stay_on_cpu(module):
    for name in dir(module):
        if name.startswith(("load_fsdp_model_to", "offload_fsdp_model_to")) or name in (
            "load_fsdp_optimizer",
            "offload_fsdp_optimizer",
        ):
            setattr(module, name, nothing)


@patch("verl.utils.memory_utils")
def no_device_cache(module):
    module.aggressive_empty_cache = nothing


@patch("verl.utils.attention_utils")
def padding_functions(module):
    """0.6 to 0.8 take these from flash-attn; verl has them in plain torch too, for another kind of device."""
    try:
        from verl.utils import npu_flash_attn_utils as plain
    except ImportError:
        return  # 0.9 finds them by itself
    names = ("index_first_axis", "pad_input", "rearrange", "unpad_input")
    functions = tuple(getattr(plain, name) for name in names)
    module._get_attention_functions = lambda: functions


@patch("verl.utils.profiler.performance")
def timing_over_ranks(module):
    """It gathers scalars into vectors of one element, which gloo refuses; one rank's time stands for all."""
    module.topk_reduce_ratio_min_max = lambda timing, k=10: (timing, timing, timing)


@patch("verl.workers.engine")
def engine_for_cpu(module):
    """0.6 and later register the FSDP engine for named devices; it runs on `cpu` as it is."""
    for backends in module.EngineRegistry._engines.values():
        for devices in backends.values():
            if isinstance(devices, dict) and "cuda" in devices:
                devices.setdefault("cpu", devices["cuda"])


@patch("verl.plugin.platform.platform_manager")
def platform_for_cpu(module):
    """0.9 asks one object everything about the device."""
    import contextlib

    class PlatformCPU(module.PlatformBase):
        device_name = vendor_name = "cpu"
        device_module = torch.cpu

        def is_available(self):
            return True

        def current_device(self):
            return torch.device("cpu")

        def device_count(self):
            return 1

        def communication_backend_name(self):
            return "gloo"

        def visible_devices_envvar(self):
            return "CUDA_VISIBLE_DEVICES"

        def ray_resource_name(self):
            return "GPU"  # what Ray places by: the declared GPU, as on a real cluster

        def ray_noset_envvars(self):
            return []

        def get_device_capability(self, device_index=0):
            return None, None

        def is_ipc_supported(self):
            return False

        def manual_seed(self, seed):
            torch.manual_seed(seed)

        @contextlib.contextmanager
        def nvtx_range(self, msg):
            yield

        manual_seed_all = manual_seed
        set_device = synchronize = set_allocator_settings = empty_cache = nothing
        profiler_start = profiler_stop = cudart = nothing

    module.PlatformRegistry.register(platform="cpu")(PlatformCPU)
    module._current_platform = PlatformCPU()


# ---- verl: rollout -----------------------------------------------------------------------------------------------


@patch("verl.workers.rollout.hf_rollout")
def one_answer_per_prompt(module):
    """A bug of 0.5.0 and not of the device: the trainer has repeated the prompts n times, and the rollout would ask
    for n answers to each again (verl pull request 2881)."""
    import verl

    if not verl.__version__.startswith("0.5."):
        return
    from omegaconf import OmegaConf

    init = module.HFRollout.__init__

    def init_with_one(self, module, config):
        init(self, module, OmegaConf.merge(config, {"n": 1}))

    module.HFRollout.__init__ = init_with_one


@patch("verl.workers.rollout.replica")
def replica_class(module):
    def load():
        import cpu_rollout

        return cpu_rollout.CpuReplica

    module.RolloutReplicaRegistry.register("hfcpu", load)


@patch("verl.workers.rollout.base")
def worker_class(module):
    if hasattr(module, "_ROLLOUT_REGISTRY"):
        module._ROLLOUT_REGISTRY["hfcpu", "async"] = "cpu_rollout.WeightPusher"


if not torch.cuda.is_available():
    sys.meta_path.insert(0, PatchingFinder)
    patch_torch_cpu()
    patch_torch_distributed()
