"""Reads the replay of a run into a pandas table, one row for each agent step.

    python -m examples.read_replay runs/catch
    python -m examples.read_replay runs/corridor --trust_config  # a custom environment

The program serves a copy of the run's last checkpoint, so the run may continue in the meantime.
"""

import argparse
import pathlib
import shutil
import sys
import tempfile

import numpy as np
import pandas as pd

from laser_tf import errors
from laser_tf.environments import factory
from laser_tf.replay import dataset, server, stored_unroll
from laser_tf.training import assembly, run_config
from laser_tf.workdir import run_directory

_TABLE = "replay"  # of unrolls


def read(workdir: pathlib.Path, unrolls: int, trust_config: bool = False) -> pd.DataFrame:
    """Returns the steps of uniformly sampled unrolls; one unroll may be sampled twice.

    Args:
      workdir: Run directory with a checkpoint of replay whose items are unrolls.
      unrolls: Number of unrolls to sample.
      trust_config: Whether the run's `config.json` may name modules to import.

    Raises UserError if the directory holds no run or no such checkpoint, or if the run replaces the
    checkpoint while it is copied.
    """
    config = run_config.read_trusted(workdir, trust_config)
    spec = factory.environment_spec(config.environment)
    agent = assembly.build_agent(config, spec, "float32", seed=0)
    signature = assembly.unroll_signature(config, spec, agent)
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "replay"
        try:
            shutil.copytree(workdir / run_directory.REPLAY_CHECKPOINT, copy)
        except OSError as error:  # The run may have replaced the checkpoint.
            raise errors.UserError(
                f"cannot copy the replay of {workdir}: {errors.one_line(error, 200)}. Try again."
            ) from None
        replay = server.ReplayServer(config.replay, signature, copy)
        table = replay.tables().get(_TABLE)  # Other schemes store sequences or episodes.
        if not table or not table.current_size:
            replay.stop()
            raise errors.UserError(
                f"{workdir} must hold a checkpoint of replayed unrolls, but it has none with "
                f"replay.scheme={config.replay.scheme}. Use a run with e.g. replay.scheme=mixed."
            )
        batches = iter(dataset.items(replay.address, _TABLE, entries=1, in_flight=2))
        parts = [_to_table(next(batches), number) for number in range(unrolls)]
        del batches  # It would request more items.
        replay.stop()
    return pd.concat(parts, ignore_index=True)


def _to_table(stored: stored_unroll.StoredUnroll, number: int) -> pd.DataFrame:
    """Returns the T transitions of an unroll [1, ...], one row for each action and its result."""
    env_output, agent_output = stored.env_output, stored.agent_output
    reward = env_output.reward[0].numpy()
    is_first = env_output.is_first[0].numpy()[-len(reward) :]  # Frames of stacks precede them.
    return pd.DataFrame(
        {
            "unroll": number,
            "learner_update": int(stored.learner_update[0]),
            "step": np.arange(len(reward) - 1),
            "action": list(agent_output.action[0].numpy()[:-1]),
            "reward": reward[1:],
            "discount": env_output.discount[0].numpy()[1:],
            "is_reset": is_first[1:],  # A reset is no transition.
        }
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("workdir", type=pathlib.Path)
    parser.add_argument("--trust_config", action="store_true")
    given = parser.parse_args()
    try:
        steps = read(given.workdir, 200, given.trust_config)
    except errors.UserError as error:
        sys.exit(f"error: {error}")
    print(steps.head(12).to_string(index=False))
    transitions = steps[~steps.is_reset]
    print(transitions.groupby("action").reward.describe()[["count", "mean", "min", "max"]])
