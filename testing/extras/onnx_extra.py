"""ONNX, which `make onnx` installs: exported policies in ONNX Runtime."""

import contextlib
import re

import onnxruntime
from absl.testing import absltest, parameterized

from laser_tf.export import exporter
from testing import pages
from testing.export import format_case, policies


class OnnxExtra(format_case.FormatCase):
    model_format = "onnx"

    def load(self, path):
        session = onnxruntime.InferenceSession(path)
        names = [output.name for output in session.get_outputs()]
        return lambda inputs: dict(zip(names, session.run(names, inputs), strict=True))

    @parameterized.parameters(*format_case.KINDS)
    def test_actions_and_states_are_the_agents(self, kind):
        self.check_actions_and_states(kind)

    def test_missing_operation_raises(self):
        self.check_missing_operation()

    def test_program_of_the_documentation_runs_an_episode(self):
        (self._folder / "policy_onnx").mkdir()
        example = policies.make("vectors")
        exporter.save(example.policy, self._folder / "policy_onnx", 12, self.model_format)
        programs = re.findall(r"```python\n(.*?)```", pages.text("docs/export.md"), re.DOTALL)
        (program,) = (text for text in programs if "import onnxruntime" in text)
        with contextlib.chdir(self._folder):
            variables: dict = {}
            exec(program, variables)
        self.assertTrue(variables["done"])


if __name__ == "__main__":
    absltest.main()
