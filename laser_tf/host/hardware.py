"""Settings that depend on the machine (compute dtype, XLA, threads, allocator).

TensorFlow is imported where it is needed: commands set the allocator before they load it.
"""

import contextlib
import ctypes
import os
import pathlib

# Fast bfloat16 arithmetic: tiles on Intel (AMX), dot products on AMD and Intel (AVX-512).
_BFLOAT16_FLAGS = ("amx_bf16", "avx512_bf16")
_CPU_INFO = pathlib.Path("/proc/cpuinfo")

# Parameters of mallopt, from glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8
_NEVER_BYTES = 2**31 - 1  # the maximum of mallopt


def keep_freed_memory() -> None:
    """Makes glibc keep freed memory, unless variables such as MALLOC_ARENA_MAX are set.

    By default, glibc returns blocks of some megabytes to the kernel, which clears their pages for
    the next allocation: 10,000 page faults in an update of LASER on Atari.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or any(name.startswith("MALLOC_") for name in os.environ):
        return
    for parameter, value in ((_ARENA_MAX, 1), (_MMAP_MAX, 0), (_TRIM_THRESHOLD, _NEVER_BYTES)):
        mallopt(parameter, value)


def hide_gpus() -> None:
    """Keeps TensorFlow, which takes all memory of a GPU that it sees, on the CPU.

    Without effect once TensorFlow has computed anything in this process.
    """
    os.environ["CUDA_VISIBLE_DEVICES"] = ""


def spare_cores(number: int) -> None:
    """Leaves some cores out of the threads of each operation; at least one thread remains.

    Without effect once TensorFlow has computed anything in this process.
    """
    if not number:
        return
    import tensorflow as tf

    threads = max(1, len(os.sched_getaffinity(0)) - number)
    with contextlib.suppress(RuntimeError):
        tf.config.threading.set_intra_op_parallelism_threads(threads)


def choose_compute_dtype(requested: str) -> tuple[str, str]:
    """Resolves `compute_dtype` to ("float32" or "bfloat16", the reason)."""
    if requested != "auto":
        return requested, "as configured"
    if kind := accelerator():
        if kind == "TPU" or _gpu_compute_capability() >= (8, 0):
            return "bfloat16", f"this {kind} computes in it"
        return "float32", f"this {kind} has no bfloat16 units"
    if os.environ.get("TF_ENABLE_ONEDNN_OPTS") == "0":  # Only its kernels use the instructions.
        return "float32", "TF_ENABLE_ONEDNN_OPTS=0 turns off the processor's bfloat16"
    words = _CPU_INFO.read_text().split() if _CPU_INFO.exists() else []
    for flag in _BFLOAT16_FLAGS:
        if flag in words:
            return "bfloat16", f"the processor has {flag}"
    return "float32", "the processor has no bfloat16 instructions"


def choose_jit_compile(requested: str) -> tuple[bool, str]:
    """Resolves `jit_compile` to (whether XLA compiles the update, the reason)."""
    if requested != "auto":
        return requested == "on", "as configured"
    if kind := accelerator():
        return True, f"XLA fuses the update on this {kind}"
    return False, "XLA slows convolutions on a CPU"


def accelerator() -> str | None:
    """Returns "GPU" or "TPU" if TensorFlow sees one."""
    import tensorflow as tf

    kinds = (kind for kind in ("GPU", "TPU") if tf.config.list_physical_devices(kind))
    return next(kinds, None)


def _gpu_compute_capability() -> tuple[int, int]:
    import tensorflow as tf

    device = tf.config.list_physical_devices("GPU")[0]
    return tf.config.experimental.get_device_details(device).get("compute_capability", (0, 0))
