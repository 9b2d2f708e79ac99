"""An export where TF-Agents is not installed."""

import sys
from unittest import mock

from absl.testing import absltest

from laser_tf import errors, export
from laser_tf.export import saved_model


class MissingPackageTest(absltest.TestCase):
    def test_what_to_install_is_said(self):
        missing = {"tf_agents": None, "tf_agents.policies": None}
        with mock.patch.dict(sys.modules, missing):
            sys.modules.pop("laser_tf.export.tf_agents_policy", None)
            vars(export).pop("tf_agents_policy", None)  # where another test has imported it
            with self.assertRaisesRegex(
                errors.UserError, "needs the package 'tf_agents'.*pip install --no-deps tf-agents=="
            ):
                saved_model.save(None, None, None)


if __name__ == "__main__":
    absltest.main()
