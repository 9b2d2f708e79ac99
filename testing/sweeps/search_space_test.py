"""Search spaces of a command line, and values that no trial accepts."""

import math

from absl.testing import absltest, parameterized

from configs import laser
from laser_tf import errors
from laser_tf.sweeps import search_space, sweep_config
from testing import messages


class AddTest(parameterized.TestCase):
    @parameterized.parameters(
        ("log_uniform(1e-4, 1e-2)", "log_uniform", (1e-4, 1e-2)),
        (" grid(0.1) ", "grid", (0.1,)),
        ("choices(adam, rmsprop)", "choices", ("adam", "rmsprop")),
        ("choices(true,False)", "choices", (True, False)),
        ("choices((64, 64), (32,))", "choices", ((64, 64), (32,))),
    )
    def test_text_is_parsed(self, text, part, values):
        sweep = {}
        search_space.add(sweep, {"agent.x": text})
        self.assertEqual(sweep, {part: {"agent": {"x": values}}})

    def test_other_distribution_of_the_key_is_replaced(self):
        sweep = {"grid": {"agent": {"x": (1,), "y": (2,)}}, "samples": 3}
        search_space.add(sweep, {"agent.x": "uniform(0, 1)"})
        expected = {"grid": {"agent": {"y": (2,)}}, "uniform": {"agent": {"x": (0, 1)}}}
        self.assertEqual(sweep, expected | {"samples": 3})

    @parameterized.parameters("normal(0, 1)", "1e-4", "uniform()", "uniform(0, 1")
    def test_other_text_raises(self, text):
        with messages.raises(errors.ConfigError, "--search_space", text, "agent.x"):
            search_space.add({}, {"agent.x": text})

    @parameterized.parameters(
        ({"grid": {"learner": 5}}, "grid.learner", 5), ({"uniform": "5"}, "uniform", "5")
    )
    def test_part_without_keys_raises(self, sweep, *named):
        with messages.raises(errors.ConfigError, *named):
            search_space.add(sweep, {"learner.learning_rate": "grid(0.1, 0.2)"})


class CheckTrialsTest(parameterized.TestCase):
    def _check(self, texts):
        sweep = {"samples": 3}
        search_space.add(sweep, texts)
        search_space.check_trials(sweep_config.Config(**sweep), laser.get_config("catch").to_dict())

    @parameterized.parameters(
        ("learner.learning_rat", "log_uniform(1e-4, 1e-2)", "learning_rat", "learning_rate"),
        ("learner.learning_rate", "log_uniform(1e-2, 1e-4)", "learner.learning_rate", 0.01),
        ("learner.learning_rate", "log_uniform(0, 1e-4)", "learner.learning_rate", 0),
        ("learner.learning_rate", "log_uniform(a, b)", "learner.learning_rate", "'a'"),
        ("learner.learning_rate", "uniform(-0.001, 100)", "learning_rate", -0.001),
        ("learner.optimizer", "choices(adam, sgdx)", "optimizer", "'sgdx'"),
        ("replay.batch_size", "uniform(8, 16)", "batch_size"),
        ("agent.discount", "grid(0.9, 0.99)", "--search_space", "agent.discount", "choices"),
        ("run.env_frames", "choices(100, 200)", "run.env_frames"),
        ("run.evaluate_every_env_frames", "choices(500)", "run.evaluate_every_env_frames", 500),
    )
    def test_value_that_no_trial_accepts_raises(self, key, text, *named):
        with messages.raises(errors.ConfigError, *named):
            self._check({key: text})

    def test_missing_space_raises(self):
        with messages.raises(errors.ConfigError, "--search_space"):
            self._check({})

    @parameterized.parameters("sweep.samples", "sweep.equal_speed", "population.method")
    def test_key_of_members_raises(self, key):
        search_space.check_keys({"sweep.seed": 3, "learner.learning_rate": 0.1})
        with messages.raises(errors.ConfigError, key, 4):
            search_space.check_keys({key: 4})


class UniformTest(absltest.TestCase):
    def test_values_are_uniform(self):
        space = sweep_config.Config(uniform={"agent": {"discount": (0.5, 1.0)}}, samples=400)
        values = [member["agent.discount"] for member in space.members()]
        self.assertTrue(all(0.5 <= value <= 1.0 for value in values))
        self.assertAlmostEqual(math.fsum(values) / 400, 0.75, delta=0.03)


if __name__ == "__main__":
    absltest.main()
