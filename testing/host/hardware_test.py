"""Tests of settings that depend on the machine."""

import os
import pathlib
import tempfile
from unittest import mock

import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.host import hardware
from testing import commands

# Blocks below and above what glibc ever keeps by itself (32 MiB), in another thread, too.
PROGRAM = """
import ctypes, resource, sys, threading
from laser_tf.host import hardware

ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE: no pages of 2 MiB, whatever the host
if sys.argv[1] == "keep":
    hardware.keep_freed_memory()

def use():
    for size in (8, 40):
        blocks = [bytearray(size * 2**20) for _ in range(2)]
        del blocks

def in_thread():
    thread = threading.Thread(target=use)
    thread.start()
    thread.join()

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

for run in (use, in_thread):
    run()
    before = faults()
    for _ in range(5):
        run()
    print((faults() - before) // 5)
"""


def _faults(argument: str, **variables: str) -> list[int]:
    """Of a round in the main thread, and of one in another."""
    kept = {name: value for name, value in os.environ.items() if name[:7] != "MALLOC_"}
    done = commands.run_program(PROGRAM, argument, env=kept | variables, check=True)
    return [int(line) for line in done.stdout.split()]


class HardwareTest(parameterized.TestCase):
    @parameterized.parameters(
        ("auto", {"avx512f", "amx_bf16"}, "1", "bfloat16"),
        ("auto", {"avx512f", "avx512_bf16"}, "1", "bfloat16"),
        ("auto", {"avx512f", "avx512_vnni"}, "1", "float32"),
        ("auto", {"avx512f", "amx_bf16"}, "0", "float32"),
        ("bfloat16", {"avx2"}, "0", "bfloat16"),
        ("float32", {"amx_bf16"}, "1", "float32"),
    )
    def test_compute_dtype_follows_request_and_processor(self, requested, flags, onednn, expected):
        with (
            tempfile.NamedTemporaryFile("w") as file,
            mock.patch.object(tf.config, "list_physical_devices", return_value=[]),
            mock.patch.dict(os.environ, {"TF_ENABLE_ONEDNN_OPTS": onednn}),
            mock.patch.object(hardware, "_CPU_INFO", pathlib.Path(file.name)),
        ):
            file.write(f"model name : any\nflags : {' '.join(sorted(flags))}\n")
            file.flush()
            dtype, reason = hardware.choose_compute_dtype(requested)
        self.assertEqual(dtype, expected)
        self.assertTrue(reason)


class ProcessAgeTest(absltest.TestCase):
    def test_spare_cores_are_left_out_of_the_threads_of_operations(self):
        program = (
            "import os, tensorflow as tf\n"
            "from laser_tf.host import hardware\n"
            "os.sched_getaffinity = lambda _: {0, 1, 2, 3}\n"
            "for cores in (1, 9):\n"
            "    hardware.spare_cores(cores)\n"
            "    print(tf.config.threading.get_intra_op_parallelism_threads())\n"
            "tf.zeros(1)\n"
            "hardware.spare_cores(2)  # too late\n"
        )
        result = commands.run_program(program, check=True)
        self.assertEqual(result.stdout.split(), ["3", "1"])


class AllocatorTest(absltest.TestCase):
    def test_freed_memory_is_kept(self):
        for faults in _faults("keep"):
            self.assertLess(faults, 200)
        for faults in _faults("as it is"):  # 40 MiB blocks alone have 20,480 pages
            self.assertGreater(faults, 10_000)

    def test_malloc_variables_take_precedence(self):
        for faults in _faults("keep", MALLOC_MMAP_THRESHOLD_="65536"):
            self.assertGreater(faults, 10_000)


if __name__ == "__main__":
    absltest.main()
