"""Model cards of exported policies; format_case.py runs the programs of the other formats."""

from absl.testing import absltest

from testing import folders
from testing.export import format_case


class SavedModelCardTest(folders.FolderTest):
    def test_program_takes_the_policys_action(self):
        example = format_case.write_with_card("continuous", self._folder, "saved_model")
        format_case.check_card(self, example, self._folder)


if __name__ == "__main__":
    absltest.main()
