"""What `auto` means on processors."""

import os
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf.host import hardware


class HardwareTest(parameterized.TestCase):
    @parameterized.parameters(
        ("auto", {"avx512f", "amx_bf16"}, "1", "bfloat16"),
        ("auto", {"avx512f", "avx512_bf16"}, "1", "bfloat16"),
        ("auto", {"avx512f", "avx512_vnni"}, "1", "float32"),
        ("auto", {"avx512f", "amx_bf16"}, "0", "float32"),
        ("bfloat16", {"avx2"}, "0", "bfloat16"),
        ("float32", {"amx_bf16"}, "1", "float32"),
    )
    def test_compute_dtype(self, requested, flags, onednn, expected):
        with (
            mock.patch.object(hardware, "_accelerator", return_value=None),
            mock.patch.object(hardware, "_cpu_flags", return_value=flags),
            mock.patch.dict(os.environ, {"TF_ENABLE_ONEDNN_OPTS": onednn}),
        ):
            dtype, reason = hardware.choose_compute_dtype(requested)
        self.assertEqual(dtype, expected)
        self.assertTrue(reason)


if __name__ == "__main__":
    absltest.main()
