"""oneDNN's kernels on every processor."""

import os
import subprocess
import sys

from absl.testing import absltest, parameterized

_VARIABLE = "TF_ENABLE_ONEDNN_OPTS"


class OneDnnTest(parameterized.TestCase):
    @parameterized.parameters((None, "1 True"), ("0", "0 False"))
    def test_kernels_are_on_unless_the_user_disables_them(self, value, expected):
        variables = {name: text for name, text in os.environ.items() if name != _VARIABLE}
        if value is not None:
            variables[_VARIABLE] = value
        # A processor with AVX-512 VNNI uses oneDNN without the variable.
        program = (
            "import os\n"
            "from laser_tf.networks import torsos\n"
            "from tensorflow.python.util import _pywrap_util_port as port\n"
            f"print(os.environ['{_VARIABLE}'], port.IsMklEnabled())"
        )
        output = subprocess.check_output([sys.executable, "-c", program], env=variables, text=True)
        self.assertEqual(output.strip(), expected)


if __name__ == "__main__":
    absltest.main()
