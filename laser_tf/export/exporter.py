"""Exports the policy of a run as a SavedModel that needs neither the run nor this package."""

import contextlib
import dataclasses
import io
import json
import logging
import os
import pathlib
import shutil
import warnings
from collections.abc import Callable, Iterator

import tensorflow as tf

from laser_tf import errors
from laser_tf.environments import factory, user_modules
from laser_tf.export import description, portable_policy
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
    unfinished = output.with_name(f"{output.name}.unfinished-{os.getpid()}")
    try:
        unfinished.mkdir(parents=True)
        save(policy, unfinished, int(counters.learner_updates))
        (unfinished / "policy.json").write_text(json.dumps(about, indent=2) + "\n")
        shutil.copy(pathlib.Path(__file__).with_name("act.py"), unfinished)
        (unfinished / "README.md").write_text(description.page(about))
        atomic.replace(unfinished, output)
    except (OSError, tf.errors.OpError) as error:
        raise run_directory.WorkdirError(
            f"cannot write {output}: {errors.first_line(error)}. Fix this, or use another --output"
        ) from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


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
        acting = [*policy.step_signature(), policy.state_signature()]
        for function, signature in (
            (policy.initial_state, [tf.TensorSpec([], tf.int32, "batch_size")]),
            (policy.greedy, acting),
            (policy.sample, [*acting, tf.TensorSpec([2], tf.int32, "seed")]),
        ):
            name = function.__name__
            compiled = tf.function(function, input_signature=signature, autograph=False)
            saver.register_concrete_function(name, compiled)
            saver.signatures[name] = _flat(function, signature)
        saver.save(str(folder))


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
