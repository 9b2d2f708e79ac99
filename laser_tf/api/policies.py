"""The functions `load_policy` and `export_policy` of the Python API."""

import os
import pathlib
from typing import TYPE_CHECKING

from laser_tf import errors
from laser_tf.api import caller_state
from laser_tf.export import exported
from laser_tf.workdir import run_directory

if TYPE_CHECKING:  # It imports TensorFlow.
    from laser_tf.export import act


@caller_state.kept()
def load_policy(
    path: str | os.PathLike[str],
    *,
    task: str | None = None,
    seed: int | None = None,
    best: bool = False,
    trust_config: bool = False,
) -> "act.Policy":
    """Returns the policy of a run's newest weights, or an exported policy.

    Args:
      path: Run directory, or directory of an exported policy.
      task: Task of the environment, if the policy has several; by default the first.
      seed: Seed of sampled actions; None for a random one.
      best: Whether to use the weights of a run that the callback `KeepBest` has kept.
      trust_config: Whether the run's `config.json` may name or contain code to execute. Runs on
        custom environments need it; exported policies do not.

    Raises:
      UserError: If the directory holds neither run nor policy, or a damaged policy.
      WorkdirError: If the run has no usable checkpoint.
      UntrustedError: If the run needs `trust_config`.
      ValueError: For an unknown task, or `best` with an exported policy.
    """
    folder = pathlib.Path(path).expanduser()
    is_run = (folder / run_directory.CONFIG_FILE).is_file()
    if not is_run and not (folder / exported.DESCRIPTION).is_file():
        run_directory.check_no_sweep(folder)
        raise errors.UserError(
            f"path must be a run directory or an exported policy, got {folder}. Use the workdir of "
            "laser_tf.train or the output of laser_tf.export_policy."
        )
    if not is_run:
        if best:
            raise errors.ConfigError(
                f"best must be False for an exported policy, got True for {folder}. Export the "
                "run with best=True."
            )
        about = exported.read_description(folder)
        functions = exported.load_functions(folder)
        from laser_tf.export import act

        return act.Policy(functions, about, task, seed)
    from laser_tf.export import act, exporter, saved_model

    restored = exporter.restore(folder, trust_config=trust_config, best=best)
    return act.Policy(saved_model.compiled(restored.policy), restored.about, task, seed)


@caller_state.kept()
def export_policy(
    workdir: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    compute_dtype: str = "",
    best: bool = False,
    trust_config: bool = False,
) -> None:
    """Exports the policy of a run's newest weights as a SavedModel, see docs/export.md.

    Args:
      workdir: Run directory.
      output: New directory, which is complete or absent afterwards.
      compute_dtype: "float32", "bfloat16" or "auto"; "" selects the run's setting.
      best: See `load_policy`.
      trust_config: See `load_policy`.

    Raises:
      WorkdirError: If the run has no usable checkpoint, or `output` exists or cannot be used.
      UntrustedError: If the run needs `trust_config`.
    """
    from laser_tf.export import exporter

    source, target = (pathlib.Path(path).expanduser() for path in (workdir, output))
    exporter.export(source, target, compute_dtype, trust_config, best)
