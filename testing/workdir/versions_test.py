"""Tests of the check of installed versions."""

import importlib.metadata
import platform
from unittest import mock

from absl.testing import absltest

from laser_tf.workdir import versions
from testing import messages


class VersionsTest(absltest.TestCase):
    def test_this_environment_passes(self):
        versions.check()
        self.assertIn("dm-reverb", versions.recorded())

    def test_other_python_is_rejected(self):
        with mock.patch.object(platform, "python_version", return_value="3.12.4"):
            with messages.raises(versions.VersionError, "python", "3.12.4", "3.11"):
                versions.check()

    def test_other_tensorflow_is_rejected(self):
        found = {"dm-reverb": "0.14.0", "tensorflow": "2.16.1"}
        with mock.patch.object(importlib.metadata, "version", lambda name: found.get(name, "0")):
            with messages.raises(versions.VersionError, "tensorflow", "2.16.1", "2.15.1"):
                versions.check()


if __name__ == "__main__":
    absltest.main()
