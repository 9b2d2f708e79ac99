"""Functions of users that create environments, as workers call them."""

import os
import pathlib
import sys
import types
from unittest import mock

import dm_env
from absl.testing import absltest, parameterized

from laser_tf import errors, user_code
from laser_tf.environments import (
    faults,
    function_suites,
    gymnasium_adapter,
    suites,
    user_functions,
)
from testing import messages
from testing.environments import small_environments, small_py_environment


def _call(function, arguments=(), seed=3, suite="gymnasium"):
    config = suites.config_class(suite)(task="a:b", arguments=dict(arguments))
    config = user_functions.configure(config, function)
    return config, config.maker(config.task, rendering=False)(seed)


class UserFunctionsTest(parameterized.TestCase):
    @parameterized.parameters(
        (small_environments.Corridor, gymnasium_adapter.Gymnasium),
        (small_environments.Beacons, small_environments.Beacons),
        (small_py_environment.make, function_suites.TFAgents),
    )
    def test_library_of_the_environment_is_detected(self, function, expected):
        config, environment = _call(function)
        self.assertIsInstance(environment, dm_env.Environment)
        self.assertIsInstance(environment, expected)
        self.assertEqual(config.tasks, (function.__name__,))
        self.assertEqual(config.user_code(), (user_code.PICKLED,))

    def test_function_gets_arguments_and_seed(self):
        def make(value, seed):
            return small_environments.Corridor(length=value, max_steps=seed)

        _, environment = _call(make, {"value": 7}, seed=5)
        made = environment._engine
        self.assertEqual((made._length, made._max_steps), (7, 5))

    def test_function_of_suite_tf_agents_sees_no_gpu(self):
        def make():
            return small_environments.Corridor(length=os.environ["CUDA_VISIBLE_DEVICES"])

        with mock.patch.dict(os.environ, CUDA_VISIBLE_DEVICES="0"):
            for suite, devices in (("gymnasium", "0"), ("tf_agents", "")):
                self.assertEqual(_call(make, suite=suite)[1]._engine._length, devices)

    def test_no_environment_is_rejected(self):
        with messages.raises(faults.UnsupportedSpaceError, "lambda", "int"):
            _call(lambda: 3)

    def test_missing_module_of_a_function_is_named_with_the_remedy(self):
        module = types.ModuleType("module_that_moved")
        exec("def make(): pass", vars(module))  # A function of the module.
        config = suites.config_class("gymnasium")()
        with mock.patch.dict(sys.modules, module_that_moved=module):
            config = user_functions.configure(config, module.make)
        named = "module_that_moved", "install", pathlib.Path.cwd()
        with messages.raises(errors.ConfigError, *named):
            config.maker(config.task, rendering=False)(3)


if __name__ == "__main__":
    absltest.main()
