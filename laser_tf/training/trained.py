"""What a run has learnt so far: its newest usable weights, in an agent or a learner."""

import pathlib

from laser_tf import types
from laser_tf.agents import base as agents_base
from laser_tf.host import hardware
from laser_tf.training import assembly, learner, learner_checkpoints, run_config, weights
from laser_tf.workdir import layout, run_directory


def restore_learner(
    workdir: pathlib.Path, config: run_config.RunConfig, spec: types.EnvironmentSpec
) -> learner.Learner:
    """A run's learner as its newest readable checkpoint has it.

    Raises:
      WorkdirError: if the folder holds no checkpoint, or none that can be read.
    """
    dtype, _ = hardware.choose_compute_dtype(config.learner.compute_dtype)
    restored = assembly.build_learner(config, spec, dtype, jit=False)
    checkpoints = learner_checkpoints.LearnerCheckpoints(
        workdir / layout.LEARNER_CHECKPOINTS, restored
    )
    if checkpoints.restore() is None:
        raise run_directory.WorkdirError(
            f"{workdir} holds no checkpoint: train first, or restore them from a backup"
        )
    return restored


def restore_agent(
    workdir: pathlib.Path,
    config: run_config.RunConfig,
    spec: types.EnvironmentSpec,
    *,
    seed: int,
) -> tuple[agents_base.Agent, learner.Counters]:
    """An agent that acts as evaluations do with a run's newest weights, and what is behind them.

    Args:
      workdir: the run's folder.
      config: the run's.
      spec: of the environment, images as single frames.
      seed: of the actions it will draw.

    Raises:
      WorkdirError: if the folder holds no checkpoint, or none that can be read.
    """
    restored = restore_learner(workdir, config, spec)
    dtype, _ = hardware.choose_compute_dtype(config.learner.compute_dtype)
    agent = assembly.build_agent(config, spec, dtype, seed, evaluating=True)
    weights.WeightCopier(restored.agent, agent, restored.counters.learner_updates).refresh()
    return agent, restored.counters
