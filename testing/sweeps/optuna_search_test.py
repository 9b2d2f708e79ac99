"""Optuna, which is optional; its searches are tested in testing/extras."""

import sys
from unittest import mock

from absl.testing import absltest

from laser_tf import errors
from laser_tf.sweeps import optuna_search
from testing import messages


class ImportTest(absltest.TestCase):
    def test_missing_package_is_named(self):
        with mock.patch.dict(sys.modules, optuna=None):
            with messages.raises(errors.MissingPackageError, "optuna", "make tune"):
                optuna_search.import_optuna()


if __name__ == "__main__":
    absltest.main()
