"""Exports the policy of a run to files that need neither the run nor this package."""

import contextlib
import dataclasses
import json
import logging
import os
import pathlib
import shutil
from typing import Any, NamedTuple

import tensorflow as tf

from laser_tf import errors
from laser_tf.environments import factory
from laser_tf.evaluation import evaluation_files
from laser_tf.export import act, converters, description, model_card, portable_policy, saved_model
from laser_tf.host import hardware
from laser_tf.training import assembly, learner_checkpoints, named_variables, run_config
from laser_tf.workdir import atomic, run_directory

SAVED_MODEL = "saved_model"
FORMATS = (SAVED_MODEL, *converters.WRITERS)
_FLOAT32 = "float32"


def export(
    workdir: pathlib.Path,
    output: pathlib.Path,
    compute_dtype: str = "",
    trust_config: bool = False,
    best: bool = False,
    model_format: str = SAVED_MODEL,
) -> None:
    """Writes the policy of a run's newest weights, with a model card, into a new directory.

    For the arguments see `api.policies.export_policy`. `compute_dtype` "" is that of an evaluation
    of the run on this machine, or float32 in TFLite and ONNX. `model_format` is one of `FORMATS`.

    Raises:
      WorkdirError: If the run has no usable checkpoint, or `output` exists, cannot be written or is
        no path from which TensorFlow loads a SavedModel.
      UntrustedError: If `config.json` names modules and `trust_config` is False.
      ConfigError: If the format has no such compute dtype.
      ValueError, ImportError, EnvironmentFailedError: If the run's environment cannot be created.
      UserError: If a package of the format is missing, or it lacks an operation of the policy.
    """
    if model_format == SAVED_MODEL:
        _check_path(output)
    if output.exists() or output.is_symlink():
        raise run_directory.WorkdirError(f"{output} exists: name a new folder with --output")
    dtype = _compute_dtype(compute_dtype, model_format)
    if model_format == converters.ONNX:
        converters.import_tf2onnx()  # Before an environment is created.
    restored = restore(workdir, dtype, trust_config, best)
    about = restored.about | model_card.run_facts(
        run_directory.read_config(workdir),
        restored.learner_updates,
        _evaluation(workdir, restored.about["trained_env_frames"], best),
        model_format,
    )
    unfinished = output.with_name(f"{output.name}.unfinished-{os.getpid()}")
    try:
        unfinished.mkdir(parents=True)
        save(restored.policy, unfinished, restored.learner_updates, model_format)
        (unfinished / act.DESCRIPTION).write_text(json.dumps(about, indent=2) + "\n")
        if model_format == SAVED_MODEL:
            shutil.copy(act.__file__, unfinished)
        (unfinished / "README.md").write_text(model_card.page(about))
        atomic.replace(unfinished, output)
    except (OSError, tf.errors.OpError) as error:
        raise run_directory.WorkdirError(
            f"cannot write {output}: {errors.first_line(error)}. Fix this, or use another --output"
        ) from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _check_path(output: pathlib.Path) -> None:
    """Raises WorkdirError for a path that TensorFlow would read as a pattern when it loads it."""
    path = str(output.absolute())
    if "[" in path or "\\" in path:
        raise run_directory.WorkdirError(
            f"output must be a path without [ and \\, got {path}. Use another --output, because "
            "TensorFlow cannot load a SavedModel from this path."
        )


class Restored(NamedTuple):
    """Policy of a run with its newest or best weights."""

    policy: portable_policy.PortablePolicy
    about: dict[str, Any]  # See `description.describe`.
    learner_updates: int  # Behind the weights.


def restore(
    workdir: pathlib.Path, compute_dtype: str = "", trust_config: bool = False, best: bool = False
) -> Restored:
    """Returns the policy of a run; for the arguments and errors see `export`."""
    config = run_config.read_trusted(workdir, trust_config)
    if compute_dtype:
        learner = dataclasses.replace(config.learner, compute_dtype=compute_dtype)
        config = dataclasses.replace(config, learner=learner)
    environment = factory.make_environment(config.environment, seed=0, num_envs=1)
    with contextlib.closing(environment):
        spec = environment.spec()
        native = dict(zip(config.environment.tasks, environment.native_specs(), strict=True))
    restored = learner_checkpoints.restore_learner(workdir, config, spec, best=best)
    dtype, _ = hardware.choose_compute_dtype(config.learner.compute_dtype)
    agent = assembly.build_agent(config, spec, dtype, seed=0, is_evaluating=True)
    counters = restored.counters
    copy_weights = named_variables.weight_copier(restored.agent, agent, counters.learner_updates)
    updates = copy_weights()
    policy = portable_policy.PortablePolicy(agent, spec, config.replay.frame_stack)
    about = description.describe(policy, config, int(counters.agent_steps), native)
    return Restored(policy, about, updates)


def _compute_dtype(requested: str, model_format: str) -> str:
    """Returns the compute dtype to use instead of the run's, or "" for the run's."""
    if model_format == SAVED_MODEL:
        return requested
    if requested not in ("", _FLOAT32):
        raise errors.ConfigError(
            f"compute_dtype must be {_FLOAT32} for the format {model_format}, got {requested}. "
            "Leave it out."
        )
    return _FLOAT32


def _evaluation(workdir: pathlib.Path, env_frames: int, best: bool) -> dict[str, Any] | None:
    """Returns the run's newest evaluation without single returns, if of the exported weights."""
    try:
        evaluation = json.loads(evaluation_files.result_file(workdir).read_text())
        is_best = evaluation["protocol"].get("weights") == "best"
        if (evaluation["env_frames"], is_best) != (env_frames, best):
            return None
        keys = "episodes", "mean_return", "standard_deviation", "env_frames", "protocol"
        return {key: evaluation[key] for key in keys}
    except (OSError, ValueError, KeyError, TypeError):  # Missing, damaged or another file.
        return None


def save(
    policy: portable_policy.PortablePolicy,
    folder: pathlib.Path,
    train_step: int,
    model_format: str = SAVED_MODEL,
) -> None:
    """Writes a policy into an existing directory; see the writers for the errors.

    `train_step` is the number of learner updates behind the weights.
    """
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)  # Libraries log progress, renamed tensors and caught errors.
    try:
        if model_format == SAVED_MODEL:
            saved_model.write(policy, folder, train_step)
        else:
            converters.WRITERS[model_format](policy, folder / f"policy.{model_format}")
    finally:
        logging.disable(before)
