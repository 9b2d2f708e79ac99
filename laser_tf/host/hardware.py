"""What `auto` means on this machine: compute dtype and XLA."""

import os
import pathlib

import tensorflow as tf

# Fast bfloat16 arithmetic: tiles on Intel (AMX), dot products on AMD and Intel (AVX-512).
_BFLOAT16_FLAGS = ("amx_bf16", "avx512_bf16")


def choose_compute_dtype(requested: str) -> tuple[str, str]:
    """Resolves `compute_dtype` to ("float32" or "bfloat16", the reason)."""
    if requested != "auto":
        return requested, "as configured"
    accelerator = _accelerator()
    if accelerator:
        capable = accelerator == "TPU" or _gpu_compute_capability() >= (8, 0)
        return (
            ("bfloat16", f"this {accelerator} computes in it")
            if capable
            else ("float32", f"this {accelerator} has no bfloat16 units")
        )
    if os.environ.get("TF_ENABLE_ONEDNN_OPTS") == "0":  # its kernels alone know the instructions
        return "float32", "TF_ENABLE_ONEDNN_OPTS=0 turns off the processor's bfloat16"
    flags = _cpu_flags()
    for flag in _BFLOAT16_FLAGS:
        if flag in flags:
            return "bfloat16", f"the processor has {flag}"
    return "float32", "the processor has no bfloat16 instructions"


def choose_jit_compile(requested: str) -> tuple[bool, str]:
    """Resolves `jit_compile` to (whether XLA compiles the update, the reason)."""
    if requested != "auto":
        return requested == "on", "as configured"
    accelerator = _accelerator()
    if accelerator:
        return True, f"XLA fuses the update on this {accelerator}"
    return False, "XLA slows convolutions on a CPU"


def _accelerator() -> str | None:
    for kind in ("GPU", "TPU"):
        if tf.config.list_physical_devices(kind):
            return kind
    return None


def _gpu_compute_capability() -> tuple[int, int]:
    device = tf.config.list_physical_devices("GPU")[0]
    return tf.config.experimental.get_device_details(device).get("compute_capability", (0, 0))


def _cpu_flags() -> set[str]:
    path = pathlib.Path("/proc/cpuinfo")
    if not path.exists():
        return set()
    lines = [line for line in path.read_text().splitlines() if line.startswith("flags")]
    return set(lines[0].split()) if lines else set()
