"""A TensorFlow that Reverb cannot load is named before anything is imported."""

from unittest import mock

from absl.testing import absltest

from laser_tf.workdir import versions
from testing import messages


class VersionsTest(absltest.TestCase):
    def test_the_environment_fits(self):
        versions.check()
        self.assertIn("dm-reverb", versions.recorded())

    def test_another_python_is_named_as_the_reason(self):
        installed = mock.Mock(side_effect=versions.importlib.metadata.PackageNotFoundError)
        with (
            mock.patch.object(versions.importlib.metadata, "version", installed),
            mock.patch.object(
                versions.platform, "python_version_tuple", return_value=("3", "12", "4")
            ),
            self.assertRaisesRegex(versions.VersionError, r"Python must be 3\.11"),
        ):
            versions.check()

    def test_another_tensorflow_is_named_with_the_remedy(self):
        installed = {"dm-reverb": "0.14.0", "tensorflow": "2.16.1"}
        with mock.patch.object(versions.importlib.metadata, "version", installed.__getitem__):
            with messages.raises(versions.VersionError, "tensorflow", "2.16.1", "2.15.1"):
                versions.check()


if __name__ == "__main__":
    absltest.main()
