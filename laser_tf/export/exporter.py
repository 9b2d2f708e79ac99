"""Exports the policy of a run as a SavedModel that needs neither the run nor this package."""

import contextlib
import dataclasses
import io
import json
import logging
import os
import pathlib
import shutil
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import tensorflow as tf

from laser_tf import errors
from laser_tf.environments import factory, user_modules
from laser_tf.export import act, description, portable_policy
from laser_tf.training import learner_checkpoints, run_config
from laser_tf.workdir import atomic, run_directory


def export(
    workdir: pathlib.Path,
    output: pathlib.Path,
    compute_dtype: str = "",
    trust_config: bool = False,
    best: bool = False,
) -> None:
    """Writes the policy of a run's newest weights, with a description, into a new directory.

    Args:
      workdir: Run directory.
      output: New directory, which is complete or absent afterwards.
      compute_dtype: Compute dtype of the torso, one of `learner_config.COMPUTE_DTYPES`; "" for that
        of an evaluation of the run on this machine.
      trust_config: Whether the run's `config.json` may name modules to import.
      best: Whether to export `best_weights` instead of the newest weights.

    Raises:
      WorkdirError: If the run has no usable checkpoint, or `output` exists or cannot be written.
      UntrustedError: If `config.json` names modules and `trust_config` is False.
      ValueError, ImportError, EnvironmentFailedError: If the run's environment cannot be created.
      UserError: If TF-Agents is not installed.
    """
    if output.exists() or output.is_symlink():
        raise run_directory.WorkdirError(f"{output} exists: name a new folder with --output")
    restored = restore(workdir, compute_dtype, trust_config, best)
    unfinished = output.with_name(f"{output.name}.unfinished-{os.getpid()}")
    try:
        unfinished.mkdir(parents=True)
        save(restored.policy, unfinished, restored.learner_updates)
        (unfinished / act.DESCRIPTION).write_text(json.dumps(restored.about, indent=2) + "\n")
        shutil.copy(act.__file__, unfinished)
        (unfinished / "README.md").write_text(description.page(restored.about))
        atomic.replace(unfinished, output)
    except (OSError, tf.errors.OpError) as error:
        raise run_directory.WorkdirError(
            f"cannot write {output}: {errors.first_line(error)}. Fix this, or use another --output"
        ) from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


class Restored(NamedTuple):
    """Policy of a run.

    Attributes:
      policy: Policy with the newest or the best weights.
      about: Description, see `description.describe`.
      learner_updates: Learner updates behind the weights.
    """

    policy: portable_policy.PortablePolicy
    about: dict[str, Any]
    learner_updates: int


def restore(
    workdir: pathlib.Path, compute_dtype: str = "", trust_config: bool = False, best: bool = False
) -> Restored:
    """Returns the policy of a run; for the arguments and errors see `export`."""
    config = run_config.parse(run_directory.read_config(workdir))
    if not trust_config:
        code = config.environment.user_code()
        user_modules.check_trusted(workdir / run_directory.CONFIG_FILE, code, named=())
    if compute_dtype:
        learner = dataclasses.replace(config.learner, compute_dtype=compute_dtype)
        config = dataclasses.replace(config, learner=learner)
    environment = factory.make_environment(config.environment, seed=0, num_envs=1)
    with contextlib.closing(environment):
        spec = environment.spec()
        native = dict(zip(config.environment.tasks, environment.native_specs(), strict=True))
    agent, counters = learner_checkpoints.restore_agent(workdir, config, spec, seed=0, best=best)
    policy = portable_policy.PortablePolicy(agent, spec, config.replay.frame_stack)
    about = description.describe(policy, config, int(counters.agent_steps), native)
    return Restored(policy, about, int(counters.learner_updates))


def save(policy: portable_policy.PortablePolicy, folder: pathlib.Path, train_step: int) -> None:
    """Writes a SavedModel with the functions and signatures of TF-Agents and of this project.

    Args:
      policy: Policy to save.
      folder: New directory.
      train_step: Learner updates behind the weights.

    Raises:
      UserError: If TF-Agents is not installed.
      OSError, tf.errors.OpError: If the model cannot be written.
    """
    with _silenced():
        try:  # Imported here because TF-Agents takes seconds to load.
            from laser_tf.export import tf_agents_policy
        except ModuleNotFoundError as error:
            package = error.name.split(".")[0]
            raise errors.UserError(
                f"an export needs the package {package!r}: pip install --no-deps tf-agents==0.19.0 "
                "gin-config==0.5.0 gym==0.23.0 gym-notices==0.1.0"
            ) from None
        saver = tf_agents_policy.make_saver(policy, train_step)
        for name, (function, signature) in _functions(policy).items():
            saver.register_concrete_function(name, _compile(function, signature))
            saver.signatures[name] = _flat(function, signature)
        saver.save(str(folder))


def compiled(policy: portable_policy.PortablePolicy) -> types.SimpleNamespace:
    """Returns the functions of a policy that a SavedModel has, under their names."""
    functions = _functions(policy).items()
    return types.SimpleNamespace(**{name: _compile(*function) for name, function in functions})


def _functions(policy: portable_policy.PortablePolicy) -> dict[str, tuple[Callable, list]]:
    """Returns name -> function and signature."""
    acting = [*policy.step_signature(), policy.state_signature()]
    return {
        "initial_state": (policy.initial_state, [tf.TensorSpec([], tf.int32, "batch_size")]),
        "greedy": (policy.greedy, acting),
        "sample": (policy.sample, [*acting, tf.TensorSpec([2], tf.int32, "seed")]),
    }


def _compile(function: Callable, signature: list) -> Callable:
    return tf.function(function, input_signature=signature, autograph=False)


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Silences gym's banner and TF-Agents' warnings about its syntax and about distributions."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _flat(function: Callable, signature: list) -> Callable:
    """Returns a policy's function for servers: named tensors in, named tensors out."""

    def call(*tensors: tf.Tensor) -> dict[str, tf.Tensor]:
        result = function(*tf.nest.pack_sequence_as(signature, tensors))
        *action, state = result if isinstance(result, tuple) else (result,)
        outputs = {f"state_{name}": tensor for name, tensor in state.items()}
        return outputs | ({"action": action[0]} if action else {})

    return tf.function(call, input_signature=tf.nest.flatten(signature), autograph=False)
