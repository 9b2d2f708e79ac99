"""What a run's folder says of its roles, without Ray."""

import csv
import pathlib
import tempfile
from unittest import mock

from absl.testing import absltest

from laser_tf.cluster import hub, roles


class RolesTest(absltest.TestCase):
    def test_what_a_process_that_has_died_said_is_not_the_state_of_the_next(self):
        role = mock.Mock(is_done=False, has_failed=False, restarts=1)
        role.name = "learner"
        said = {"learner": hub.Health("far", "node", 7, "learns, slowly", False, {}, 30.0)}
        with tempfile.TemporaryDirectory() as folder:
            for is_there, expected in ((True, "learns; slowly"), (False, "starts")):
                role.is_there = is_there
                roles.write_states(pathlib.Path(folder), [role], said)
                text = pathlib.Path(folder, roles.ROLES).read_text()
                (row,) = csv.DictReader(text.splitlines())
                self.assertEqual(row["state"], expected)
                self.assertEqual(row["host"], "far")


if __name__ == "__main__":
    absltest.main()
