"""Model cards of exported policies; format_case.py runs the programs of the other formats."""

import pathlib
import tempfile

from absl.testing import absltest

from testing.export import format_case


class SavedModelCardTest(absltest.TestCase):
    def test_program_takes_the_policys_action(self):
        folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        example = format_case.write_with_card("continuous", folder, "saved_model")
        format_case.check_card(self, example, folder)


if __name__ == "__main__":
    absltest.main()
