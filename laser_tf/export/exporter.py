"""From a run's folder to a folder that needs neither the run nor this package."""

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil

import tensorflow as tf

from laser_tf import errors
from laser_tf.environments import factory, user_modules
from laser_tf.export import description, portable_policy, saved_model
from laser_tf.training import run_config, trained
from laser_tf.workdir import atomic, run_directory


def export(
    workdir: pathlib.Path,
    output: pathlib.Path,
    compute_dtype: str = "",
    trust_config: bool = False,
) -> None:
    """Writes the policy of a run's newest weights, with a description, into a new folder.

    Args:
      workdir: the run's folder.
      output: the new folder; it is there in full or not at all.
      compute_dtype: of the torso, one of `learner_config.COMPUTE_DTYPES`; "": the run's, as an
        evaluation on this machine has it.
      trust_config: Whether the run's `config.json` may name modules to import.

    Raises:
      WorkdirError: if the run has no usable checkpoint, or `output` exists or cannot be written.
      UntrustedError: If `config.json` names modules and `trust_config` is False.
      ValueError, ImportError, EnvironmentFailedError: if the run's environment cannot be made.
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
    with contextlib.closing(
        factory.make_environment(config.environment, seed=0, num_envs=1)
    ) as environment:
        spec = environment.spec()
        own = dict(zip(config.environment.tasks, environment.native_specs(), strict=True))
    agent, counters = trained.restore_agent(workdir, config, spec, seed=0)
    policy = portable_policy.PortablePolicy(agent, spec, config.replay.frame_stack)
    about = description.describe(policy, config, int(counters.agent_steps), own)
    _write(policy, about, output, int(counters.learner_updates))


def _write(
    policy: portable_policy.PortablePolicy, about: dict, output: pathlib.Path, updates: int
) -> None:
    unfinished = output.with_name(f"{output.name}.unfinished-{os.getpid()}")
    try:
        unfinished.mkdir(parents=True)
        saved_model.save(policy, unfinished, updates)
        (unfinished / "policy.json").write_text(json.dumps(about, indent=2) + "\n")
        (unfinished / "README.md").write_text(description.page(about))
        atomic.replace(unfinished, output)
    except (OSError, tf.errors.OpError) as error:
        raise run_directory.WorkdirError(
            f"cannot write {output}: {errors.first_line(error)}; {errors.file_remedy(error)}, or "
            "choose another --output"
        ) from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
