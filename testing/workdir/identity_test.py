"""Tests of the identity of a run."""

import dataclasses

from absl.testing import absltest, parameterized

from laser_tf.environments import suites
from laser_tf.training import run_config
from laser_tf.workdir import identity
from testing import messages

BEFORE = {
    "run": {"env_frames": 100, "seed": 1},
    "environment": {"task": "pong"},
    "cluster": {"actors": 0},
    "replay": {"address": "a:1"},
}


def _changed(**sections):
    names = {**BEFORE, **sections}
    return {name: {**BEFORE.get(name, {}), **sections.get(name, {})} for name in names}


def _all_keys() -> set[str]:
    """Keys of every section of a run, for every suite, as `section.key`."""
    return {
        f"{section}.{field.name}"
        for suite in suites.SUITES
        for section, known in run_config.section_classes({"environment": {"suite": suite}}).items()
        for field in dataclasses.fields(known)
    }


class IdentityTest(parameterized.TestCase):
    @parameterized.parameters(
        ({},),
        ({"cluster": {"actors": 8}},),
        ({"replay": {"address": "b:2", "in_checkpoints": False}},),
        ({"run": {"replay_port": 0, "checkpoint_minutes": 1.0}},),
        ({"environment": {"max_broken_episodes": 50, "num_workers": 3, "num_threads": 2}},),
        ({"learner": {"jit_compile": "off", "non_finite_limit": 50}},),
        ({"run": {"evaluation_episodes": 5}},),
    )
    def test_changeable_keys_do_not_differ(self, changed):
        self.assertEmpty(identity.describe_differences(BEFORE, _changed(**changed)))
        self.assertFalse(identity.only_extends(BEFORE, _changed(**changed)))

    def test_changeable_keys_exist_in_a_section(self):
        self.assertContainsSubset(identity.CHANGEABLE_KEYS, _all_keys())

    def test_difference_is_named_with_both_values(self):
        now = _changed(run={"seed": 2, "new": 3})
        messages.assert_names(
            identity.describe_differences(BEFORE, now), "run.new", None, 3, "run.seed", 1, 2
        )

    def test_missing_key_has_its_default(self):
        defaults = {"run": {"seed": 5, "new": 0}, "agent": {"kind": "laser"}, "replay": {"x": 1}}
        completed = identity.with_defaults(BEFORE, defaults)
        self.assertEqual(completed["run"], {"env_frames": 100, "seed": 1, "new": 0})
        self.assertEqual(completed["agent"], {"kind": "laser"})
        self.assertEqual(completed["replay"], {"x": 1, "address": "a:1"})
        self.assertNotIn("new", BEFORE["run"])

    @parameterized.parameters(
        ({"env_frames": 101}, True),
        ({"env_frames": 99}, False),
        ({"env_frames": 101, "seed": 2}, False),
    )
    def test_only_more_frames_extend_a_run(self, run, extends):
        now = _changed(run=run, cluster={"actors": 8})
        self.assertEqual(identity.only_extends(BEFORE, now), extends)


if __name__ == "__main__":
    absltest.main()
