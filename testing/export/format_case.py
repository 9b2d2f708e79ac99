"""Tests that a converted policy of any format passes: the agent's actions, and its model card."""

import contextlib
import json
import pathlib
import re
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from laser_tf import errors, types
from laser_tf.environments import base
from laser_tf.export import description, exporter, model_card, portable_policy
from testing import folders, messages
from testing.export import policies

KINDS = ("minatar", "vectors", "continuous", "deep", "reactor")  # the last three have a core
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}


def write_with_card(kind: str, folder: pathlib.Path, model_format: str) -> policies.Example:
    """Writes a policy and its model card, without a run."""
    example = policies.make(kind)
    exporter.save(example.policy, folder, 12, model_format)
    num_leaves = len(tf.nest.flatten(example.policy.step_signature()[0]))
    native = base.NativeSpec(example.policy.spec.action, [0] * num_leaves)
    about = description.describe(example.policy, policies.config(kind), 0, {"task": native})
    about |= model_card.run_facts({}, 12, None, model_format)
    (folder / "README.md").write_text(model_card.page(json.loads(json.dumps(about))))
    return example


def check_card(test: absltest.TestCase, example: policies.Example, folder: pathlib.Path) -> None:
    """Asserts that the program of a model card takes the policy's action and has its state."""
    variables = _run_card(folder)
    zeros = tf.nest.map_structure(
        lambda signature: tf.zeros([1, *signature.shape[1:]], signature.dtype),
        [*example.policy.step_signature()],
    )
    zeros[2:] = [tf.ones([1]), tf.constant([True])]
    action, state = example.policy.greedy(*zeros, example.policy.initial_state(1))
    np.testing.assert_allclose(variables["action"], action[0], **TOLERANCE)
    _assert_is_state(test, variables["state"], state)


class FormatCase(folders.FolderTest):
    """Base of the tests of a converted format."""

    model_format: str

    def load(self, path: pathlib.Path) -> Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]:
        """Returns the function of a file."""
        raise NotImplementedError

    def check_actions_and_states(self, kind: str) -> None:
        """Asserts that a converted policy has the agent's greedy actions and states."""
        example = write_with_card(kind, self._folder, self.model_format)
        greedy = self.load(self._folder / f"policy.{self.model_format}")
        steps, actions = policies.act_greedily(example)
        state = example.policy.initial_state(policies.NUM_ENVS)
        own = {f"state_{name}": tensor.numpy() for name, tensor in state.items()}
        for step, expected in zip(steps, actions, strict=True):
            outputs = dict(greedy(_named(example, step) | own))
            arguments = step.observation, step.reward, step.discount, step.is_first
            _, state = example.policy.greedy(*arguments, state)
            np.testing.assert_allclose(outputs.pop("action"), expected, **TOLERANCE)
            own = {name.removeprefix("next_"): array for name, array in outputs.items()}
            _assert_is_state(self, own, state)
        self.assertGreater(len(np.unique(np.stack(actions))), 1)
        self.assertGreater(np.stack([step.is_first for step in steps[1:]]).sum(), 1)
        check_card(self, example, self._folder)

    def check_missing_operation(self) -> None:
        """Asserts that an error names an operation that the format lacks, and writes no file."""
        policy = policies.make("vectors").policy

        def greedy(
            _, reward: tf.Tensor, *arguments: Any
        ) -> tuple[tf.Tensor, portable_policy.State]:
            return tf.math.polygamma(1.0, reward), arguments[-1]

        with mock.patch.object(policy, "greedy", greedy):
            with messages.raises(errors.UserError, "Polygamma", "--format=saved_model"):
                exporter.save(policy, self._folder, 12, self.model_format)
        self.assertEmpty(list(self._folder.iterdir()))


def _assert_is_state(
    test: absltest.TestCase, actual: dict[str, np.ndarray], expected: portable_policy.State
) -> None:
    test.assertCountEqual(actual, [f"state_{name}" for name in expected])
    for name, tensor in expected.items():
        array = np.asarray(actual[f"state_{name}"])
        test.assertEqual(array.dtype, tensor.dtype.as_numpy_dtype)
        np.testing.assert_allclose(array, tensor, **TOLERANCE)


def _run_card(folder: pathlib.Path) -> dict[str, Any]:
    """Runs the program of a model card as its reader would; returns its variables."""
    program = re.search(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)[1]
    variables: dict[str, Any] = {}
    with contextlib.chdir(folder):
        exec(program, variables)
    return variables


def _named(example: policies.Example, step: types.EnvOutput) -> dict[str, np.ndarray]:
    """Returns the inputs of `greedy`, without the state, by their names."""
    signature = tf.nest.flatten(example.policy.step_signature())
    leaves = tf.nest.flatten((step.observation, step.reward, step.discount, step.is_first))
    return {spec.name: np.asarray(leaf) for spec, leaf in zip(signature, leaves, strict=True)}
