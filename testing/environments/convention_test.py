"""Tests of all environments: the time convention, the specs and the seeds."""

import numpy as np
import tree
from absl.testing import absltest, parameterized
from dm_env import specs

from testing import messages
from testing.environments import rollouts

SMALL = "testing.environments.small_environments"
# Small limits cut long episodes; the others end by themselves.
ENVIRONMENTS = (
    ("catch", {"suite": "catch", "task": "catch"}),
    ("tmaze", {"suite": "tmaze", "task": "tmaze", "corridor_length": 2}),
    ("minatar_breakout", {"suite": "minatar", "task": "breakout", "sticky_actions": 0.1}),
    ("minatar_freeway", {"suite": "minatar", "task": "freeway", "max_frames_per_episode": 100}),
    ("atari_pong", {"suite": "atari", "task": "pong", "max_frames_per_episode": 200}),
    ("atari_breakout", {"suite": "atari", "task": "breakout", "sticky_actions": 0.25}),
    ("gymnasium_corridor", {"suite": "gymnasium", "task": f"{SMALL}:Corridor-v0"}),
    ("dm_env_beacons", {"suite": "dm_env", "task": f"{SMALL}:Beacons"}),
    (
        "gymnasium_pendulum",
        {"suite": "gymnasium", "task": "Pendulum-v1", "max_frames_per_episode": 30},
    ),
)
# One environment of each implementation.
IMPLEMENTATIONS = tuple(ENVIRONMENTS[number] for number in (0, 1, 3, 5, 8))
STEPS = 250  # Agent steps, enough for two episodes of each environment.


def make(**options):
    if options["suite"] in ("gymnasium", "dm_env"):
        options = {"num_workers": 1 + (options.get("num_envs") != 1)} | options
    return rollouts.make(**options)


class ConventionTest(parameterized.TestCase):
    @parameterized.named_parameters(*ENVIRONMENTS)
    def test_steps_follow_the_convention_and_the_specs(self, options):
        if options["suite"] == "atari":  # A lost life has discount 0 too, without an end.
            options = {**options, "life_loss_is_end": False}
        with make(**options, num_envs=3) as environment:
            actions = rollouts.random_actions(environment, STEPS)
            outputs = rollouts.run(environment, actions)
            spec, frames = environment.spec(), environment.action_repeat
        self.assertTrue(outputs.is_first[0].all())
        self.assertFalse((outputs.is_first[1:] & outputs.is_first[:-1]).any())
        np.testing.assert_array_equal(outputs.reward[outputs.is_first], 0)
        np.testing.assert_array_equal(outputs.discount[outputs.is_first], 1)
        self.assertContainsSubset(np.unique(outputs.discount), [0, 1])
        np.testing.assert_array_equal(outputs.previous_action[0], 0)
        np.testing.assert_array_equal(outputs.previous_action[1:], actions)
        self.assertEqual(outputs.previous_action.dtype, spec.action.dtype)
        self.assertEqual((outputs.reward.dtype, outputs.discount.dtype), (np.float32, np.float32))
        for leaf_spec, leaf in zip(
            tree.flatten(spec.observation), tree.flatten(outputs.observation), strict=True
        ):
            for index in range(3):
                leaf_spec.validate(leaf[STEPS, index])
        starts_again = outputs.is_first[1:]
        self.assertTrue(starts_again.any(), "some episode should have ended")
        self.assertTrue(starts_again[outputs.discount[:-1] == 0].all())
        limit = options.get("max_frames_per_episode", 0)
        if limit:  # Where a first output follows a discount of 1, the time limit cuts the episode.
            for index in range(3):
                starts = np.flatnonzero(outputs.is_first[:, index])
                lengths = np.diff(starts) - 1
                is_cut = outputs.discount[starts[1:] - 1, index] == 1
                np.testing.assert_array_equal(lengths[is_cut], -(-limit // frames))

    @parameterized.named_parameters(*IMPLEMENTATIONS)
    def test_action_after_an_end_is_ignored_and_arrays_are_copies(self, options):
        with make(**options) as environment:
            actions = rollouts.random_actions(environment, STEPS)
            expected = rollouts.run(environment, actions)
        ignored = expected.is_first[1:].reshape(actions.shape[:2] + (1,) * (actions.ndim - 2))
        with make(**options) as environment:
            others = rollouts.random_actions(environment, STEPS, seed=1)
            outputs = [environment.reset()]
            copies = [rollouts.map_columns(np.copy, outputs[0])]
            for action in np.where(ignored, others, actions).astype(actions.dtype):
                outputs.append(environment.step(action))
                copies.append(rollouts.map_columns(np.copy, outputs[-1]))
                action[...] = -1  # The caller's own array.
        for output, copied in zip(outputs, copies, strict=True):
            rollouts.assert_same(output, copied)
        actual = rollouts.map_columns(lambda *column: np.stack(column), *copies)
        fields = ("observation", "reward", "discount", "is_first")
        rollouts.assert_same(expected, actual, fields)

    @parameterized.parameters(
        {"suite": "catch", "task": "catch"},
        {"suite": "tmaze", "task": "tmaze", "corridor_length": 2},
    )
    def test_reward_offset_is_added_to_transitions_only(self, **options):
        episodes = []
        for offset in (0.0, 1.5):
            with make(**options, num_envs=3, reward_offset=offset) as environment:
                actions = rollouts.random_actions(environment, 60)
                episodes.append(rollouts.run(environment, actions))
        plain, offset = episodes
        # The step between two episodes is no transition, and has reward 0 always.
        expected = plain.reward + 1.5 * ~plain.is_first
        rollouts.assert_same(plain._replace(reward=expected.astype(np.float32)), offset)


class SeedTest(parameterized.TestCase):
    @parameterized.named_parameters(*IMPLEMENTATIONS)
    def test_environment_depends_on_its_seed_and_actions_only(self, options):
        with make(**options, num_envs=3, seed=7) as environment:
            actions = rollouts.random_actions(environment, STEPS)
            actions[:, 1] = actions[:, 2]
            batch = rollouts.run(environment, actions)
        one, other = (
            b"".join(leaf[:, index].tobytes() for leaf in tree.flatten(batch.observation))
            for index in (1, 2)
        )
        self.assertNotEqual(one, other)
        with make(**options, num_envs=1, seed=9) as environment:
            alone = rollouts.run(environment, actions[:, 2:])
        rollouts.assert_same(rollouts.map_columns(lambda column: column[:, 2:], batch), alone)

    @parameterized.named_parameters(*IMPLEMENTATIONS)
    def test_later_reset_starts_new_episodes_of_the_same_streams(self, options):
        def run_twice():
            with make(**options, num_envs=4) as environment:
                actions = rollouts.random_actions(environment, 40)
                return rollouts.run(environment, actions), rollouts.run(environment, actions)

        first, second = run_twice()
        self.assertTrue(second.is_first[0].all())
        leaves = (tree.flatten(outputs.observation) for outputs in (first, second))
        self.assertFalse(all(map(np.array_equal, *leaves)))
        rollouts.assert_same(second, run_twice()[1])


class InvalidActionTest(parameterized.TestCase):
    @parameterized.named_parameters(ENVIRONMENTS[0], ENVIRONMENTS[-1])
    def test_invalid_actions_raise_and_change_nothing(self, options):
        with make(**options) as environment:
            spec = environment.action_spec()
            with self.assertRaises(RuntimeError):
                environment.step(np.zeros((2, *spec.shape), spec.dtype))
            environment.reset()
            valid = np.broadcast_to(spec.maximum, (2, *spec.shape)).astype(spec.dtype)
            beyond = valid + np.ones_like(valid)
            for actions, named in (
                (beyond, (spec.maximum.tolist(), beyond.flat[0])),
                (
                    valid[:1],
                    (f"{spec.dtype}{list(valid.shape)}", f"{spec.dtype}{[1, *spec.shape]}"),
                ),
                (valid[None], (f"{spec.dtype}{list(valid.shape)}",)),
                (valid.astype(bool), (f"bool{list(valid.shape)}",)),
            ):
                with messages.raises(ValueError, *named):
                    environment.step(actions)
            if isinstance(spec, specs.DiscreteArray):
                with messages.raises(ValueError, "float64[2]"):
                    environment.step(np.zeros(2))
            previous = environment.step(valid.tolist()).previous_action
            np.testing.assert_array_equal(previous, valid)
        with self.assertRaises(RuntimeError):
            environment.step(valid)
        environment.close()


if __name__ == "__main__":
    absltest.main()
