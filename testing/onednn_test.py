"""oneDNN's kernels on every processor."""

import os

from absl.testing import absltest, parameterized

from testing import commands

_VARIABLE = "TF_ENABLE_ONEDNN_OPTS"


class OneDnnTest(parameterized.TestCase):
    @parameterized.parameters((None, "1"), ("0", "0"))
    def test_kernels_are_on_unless_the_user_disables_them(self, value, expected):
        variables = {name: text for name, text in os.environ.items() if name != _VARIABLE}
        if value is not None:
            variables[_VARIABLE] = value
        # A processor with AVX-512 VNNI uses oneDNN without the variable.
        # TensorFlow reads it when it is imported, here in place of the real one.
        program = (
            "import os, sys\n"
            "class Finder:\n"
            "    def find_spec(self, name, *_):\n"
            "        if name == 'tensorflow':\n"
            f"            sys.exit(os.environ['{_VARIABLE}'])\n"
            "sys.meta_path.insert(0, Finder())\n"
            "from laser_tf.networks import torsos\n"
        )
        done = commands.run_program(program, env=variables)
        self.assertEqual(done.stderr.strip(), expected)


if __name__ == "__main__":
    absltest.main()
