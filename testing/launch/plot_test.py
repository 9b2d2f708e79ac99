"""What launch.plot refuses before it draws or writes."""

import pathlib
import tempfile

from absl.testing import absltest, parameterized

from launch import command_line, seed_curves
from testing import commands


class PlotTest(parameterized.TestCase):
    def test_a_folder_without_a_run_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            for path in (pathlib.Path(folder), pathlib.Path(folder) / "none"):
                with self.assertRaisesRegex(command_line.UsageError, f"{path} holds no run"):
                    seed_curves.read([path], "loss/total")

    @parameterized.parameters(
        ("--output=o.xyz", "--output=o.xyz: end it in .png"),
        ("--output=folder", "--output=folder: end it in .png"),
        ("--title=$\\frac{$", "holds mathematics that Matplotlib cannot read"),
        ("--curve=$x_$=a", "'$x_$' holds mathematics"),
        ("--title=loss at 3 $", "runs/none holds no run: name the folder of one"),
    )
    def test_what_cannot_be_drawn_is_refused_in_one_line_and_nothing_is_written(
        self, flag, message
    ):
        with tempfile.TemporaryDirectory() as folder:
            output = f"--output={folder}/deep/picture.png"
            code, _, errors = commands.run("plot", "--curve=a=runs/none", output, flag)
            self.assertEqual(code, 1)
            self.assertLen(errors.splitlines(), 1, errors)
            self.assertStartsWith(errors, "error: ")
            self.assertIn(message, errors)
            self.assertEmpty(list(pathlib.Path(folder).iterdir()))


if __name__ == "__main__":
    absltest.main()
