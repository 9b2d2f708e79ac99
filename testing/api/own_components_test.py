"""The agent, the torso and the replay scheme of docs/extending.md, as a reader would use them."""

from typing import Any

import numpy as np
from absl.testing import absltest, parameterized

import laser_tf
from laser_tf import errors, user_code
from laser_tf.environments import factory
from laser_tf.training import learner_checkpoints
from testing import documented_code, folders, messages

AGENT = {
    "agent.name": "my_a2c:A2C",
    "agent.torso": "my_torso:ResidualTorso",
    "agent.image_normalisation": "running",
    "replay.scheme": "online",
}
SCHEME = {"replay.scheme": "my_replay:Newest"}
WRONG = """
from laser_tf.agents import agent_config, base
from laser_tf.replay.schemes import base as schemes
from laser_tf.networks import torsos
from my_a2c import A2C
import dataclasses, types, tensorflow as tf

class Plain:
    pass

class NoLoss(base.PolicyAgent):
    pass

class Base(base.PolicyAgent):
    def __init__(self, config, context): raise NotImplementedError
    def _acting_network(self): ...
    def _policy_outputs(self, env_output, core_state): ...
    def loss(self, unroll): ...

class WrongConfig(Base):
    config_class = dict

@dataclasses.dataclass(frozen=True, kw_only=True)
class BuggyConfig(agent_config.AgentConfig):
    def __post_init__(self):
        raise ValueError("a bug of the user")

class Buggy(Base):
    config_class = BuggyConfig

@dataclasses.dataclass(frozen=True, kw_only=True)
class TextConfig(agent_config.AgentConfig):
    cost: "float" = 0.5

class Text(Base):
    config_class = TextConfig

class PlainConfig(agent_config.AgentConfig):
    cost: float = 0.5

class Undecorated(Base):
    config_class = PlainConfig

class OtherParameters(Base):
    def __init__(self, config): ...

class TupleLoss(A2C):
    def loss(self, unroll): return tuple(super().loss(unroll))

class Keyless(A2C):
    config_class = agent_config.AgentConfig

    def __init__(self, config, context):
        values = dataclasses.asdict(config) | {"value_cost": 0.5, "entropy_cost": 0.01}
        super().__init__(types.SimpleNamespace(**values), context)

class TwoParameters(tf.Module):
    def __init__(self, channel_multiplier, dtype): ...
    def __call__(self, images): return images

class NotCallable(tf.Module):
    def __init__(self, channel_multiplier, center, dtype): ...

class NoFeatures(torsos.Torso):
    pass

class Images(NotCallable):
    def __call__(self, images): return tf.cast(images, tf.float32)

class BuggyTorso(NotCallable):
    def __call__(self, images): raise ValueError("a bug of the user")
"""


def _config(overrides: dict[str, Any]) -> Any:
    short = {"run.env_frames": 800, "run.evaluation_episodes": 0}
    return laser_tf.load_config("laser:catch", overrides | short)


class DocumentedComponentsTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self._output = self._folder / "policy"

    def test_agent_and_torso_train_evaluate_and_export(self):
        with documented_code.importable():
            config = _config(AGENT)
            self.assertTrue(laser_tf.train(config, self._workdir, progress=False).finished)
            self._assert_learned(config)
            evaluation = laser_tf.evaluate(
                self._workdir, episodes=2, trust_config=True, progress=False
            )
            self.assertEqual(evaluation.episodes, 2)
            laser_tf.export_policy(self._workdir, self._output, trust_config=True)
            with self.assertRaises(user_code.UntrustedError):
                laser_tf.load_policy(self._workdir)
            laser_tf.load_policy(self._workdir, trust_config=True)
        with messages.raises(errors.ConfigError, "name", "my_a2c:A2C"):
            laser_tf.load_policy(self._workdir, trust_config=True)
        policy = laser_tf.load_policy(self._output)  # It needs no module.
        image = np.zeros([10, 5, 1], np.uint8)
        self.assertIn(policy.act(image, policy.initial_state())[0], range(3))

    def _assert_learned(self, config: Any) -> None:
        spec = factory.environment_spec(config.environment)
        learner = learner_checkpoints.restore_learner(self._workdir, config, spec)
        agent = learner.agent
        # The layer of the values is created by the loss; its bias is zero before training.
        self.assertGreater(np.abs(agent._value_head.bias.numpy()).max(), 0)
        moments = agent._network.moments
        self.assertGreater(float(moments[0].numpy().max()), 0)
        acting = {id(variable) for variable in agent.acting_variables}
        self.assertTrue({id(moment) for moment in moments} <= acting)
        self.assertNotIn(id(agent.entropy_cost), acting)

    def test_agent_learns_from_the_scheme(self):
        with documented_code.importable():
            config = _config(SCHEME | {"replay.max_replays": 3})
            self.assertTrue(laser_tf.train(config, self._workdir, progress=False).finished)

    def test_error_of_the_scheme_names_its_key(self):
        with (
            documented_code.importable(),
            messages.raises(errors.ConfigError, "config.replay", "max_replays", 2, 3),
        ):
            _config(SCHEME | {"replay.max_replays": 2})


class WrongComponentsTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self.enter_context(documented_code.importable())
        self.enter_context(documented_code.importable({"wrong_code": WRONG}))

    @parameterized.parameters(
        ("agent.name", "no_such_module:Agent", "no_such_module"),
        ("agent.name", "wrong_code:Plane", "Plain"),
        ("agent.name", "wrong_code:Plain", "laser_tf.agents.base.Agent"),
        ("agent.name", "wrong_code:", "my_module:MyClass"),
        ("agent.name", "wrong_code:NoLoss", "loss"),
        ("agent.name", "wrong_code:WrongConfig", "config_class"),
        ("agent.name", "wrong_code:Text", "cost", "annotations"),
        ("agent.name", "wrong_code:Undecorated", "cost", "PlainConfig", "@dataclasses.dataclass"),
        ("agent.name", "wrong_code:OtherParameters", "__init__(self, config, context)"),
        ("replay.scheme", "wrong_code:Base", "laser_tf.replay.schemes.base.ReplayScheme"),
        ("replay.scheme", "no_such_module:Scheme", "no_such_module"),
        ("agent.torso", "no_such_module:Torso", "no_such_module"),
        ("agent.torso", "wrong_code:Plain", "Module"),
        ("agent.torso", "wrong_code.py:Images", "'wrong_code'"),
        ("agent.torso", "wrong_code:NoFeatures", "laser_tf.networks.torsos.Torso", "_features"),
        ("agent.torso", "wrong_code:TwoParameters", "center"),
        ("agent.torso", "wrong_code:NotCallable", "__call__"),
        ("agent.torso", "wrong_code:Images", "[2, 10, 5, 1]"),
    )
    def test_wrong_component_is_rejected_and_nothing_written(self, key, path, *named):
        with messages.raises(errors.ConfigError, key.partition(".")[0], *named):
            laser_tf.train(_config({key: path}), self._workdir)
        self.assertFalse(self._workdir.exists())

    def test_loss_of_another_type_is_rejected(self):
        config = _config({"agent.name": "wrong_code:TupleLoss", "replay.scheme": "online"})
        with messages.raises(errors.ConfigError, "agent.name", "wrong_code:TupleLoss", "tuple"):
            laser_tf.train(config, self._workdir)
        self.assertFalse(self._workdir.exists())

    def test_agent_without_key_of_its_entropy_cost_resumes(self):
        config = _config({"agent.name": "wrong_code:Keyless", "replay.scheme": "online"})
        stop = laser_tf.callbacks.StopAfter(seconds=1e-3)
        laser_tf.train(config, self._workdir, callbacks=[stop], progress=False)
        self.assertTrue(laser_tf.train(config, self._workdir, progress=False).finished)

    def test_unknown_key_names_the_config_class(self):
        with messages.raises(errors.ConfigError, "value_const", "value_cost", "my_a2c.A2CConfig"):
            _config({"agent.name": "my_a2c:A2C", "agent.value_const": 1.0})

    @parameterized.parameters(
        ("agent.name", "wrong_code:Buggy"), ("agent.torso", "wrong_code:BuggyTorso")
    )
    def test_value_error_of_user_code_is_no_user_error(self, key, path):
        with self.assertRaisesRegex(ValueError, "a bug of the user") as caught:
            laser_tf.train(_config({key: path}), self._workdir)
        self.assertNotIsInstance(caught.exception, errors.UserError)
        self.assertFalse(self._workdir.exists())


if __name__ == "__main__":
    absltest.main()
