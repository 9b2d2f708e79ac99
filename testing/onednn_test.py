"""oneDNN's kernels on every processor."""

import os
import subprocess
import sys

from absl.testing import absltest, parameterized

_VARIABLE = "TF_ENABLE_ONEDNN_OPTS"


class OneDnnTest(parameterized.TestCase):
    @parameterized.parameters((None, "1 True"), ("0", "0 False"))
    def test_it_is_asked_unless_the_user_says_otherwise(self, value, expected):
        variables = {name: text for name, text in os.environ.items() if name != _VARIABLE}
        if value is not None:
            variables[_VARIABLE] = value
        # The variable, too: a processor with AVX-512 VNNI would have oneDNN without it.
        program = (
            "import os\n"
            "from laser_tf.networks import torsos\n"
            "from tensorflow.python.util import _pywrap_util_port as port\n"
            f"print(os.environ['{_VARIABLE}'], port.IsMklEnabled())"
        )
        run = subprocess.run(
            [sys.executable, "-c", program],
            env=variables,
            capture_output=True,
            text=True,
            check=True,
        )
        self.assertEqual(run.stdout.strip(), expected)


if __name__ == "__main__":
    absltest.main()
