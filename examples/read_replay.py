"""What is in a run's replay, as a table of pandas: one row an agent step.

    python -m examples.read_replay runs/catch
    python -m examples.read_replay runs/corridor --trust_config  # a custom environment

Reads the run's last checkpoint, of which it serves a copy: the run itself may go on. (pandas comes
with minatar.)
"""

import argparse
import pathlib
import shutil
import sys
import tempfile

import numpy as np
import pandas as pd

from laser_tf import errors
from laser_tf.environments import factory, user_modules
from laser_tf.replay import dataset, server, stored_unroll
from laser_tf.training import assembly, run_config
from laser_tf.workdir import layout, run_directory


def read(workdir: pathlib.Path, unrolls: int, trust_config: bool = False) -> pd.DataFrame:
    """Draws from a run's replay, uniformly, so that one unroll may come twice.

    Args:
      workdir: the run's folder, with a checkpoint of replay whose items are unrolls.
      unrolls: how many.
      trust_config: Whether the run's `config.json` may name modules to import.
    """
    config = run_config.parse(run_directory.read_config(workdir))
    if not trust_config:
        code = config.environment.user_code()
        user_modules.check_trusted(workdir / run_directory.CONFIG_FILE, code, named=())
    spec = factory.environment_spec(config.environment)
    agent = assembly.build_agent(config, spec, "float32", seed=0)
    signature = assembly.unroll_signature(config, spec, agent)
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "replay"
        shutil.copytree(workdir / layout.REPLAY_CHECKPOINT, copy)
        replay = server.ReplayServer(config.replay, signature, copy)
        table = config.replay.replay_table
        batches = iter(dataset.unrolls(replay.address, table, entries=1, in_flight=2))
        frames = [_frame(next(batches), number) for number in range(unrolls)]
        del batches  # it asks the server for more
        replay.stop()
    return pd.concat(frames, ignore_index=True)


def _frame(stored: stored_unroll.StoredUnroll, number: int) -> pd.DataFrame:
    """The T transitions of an unroll [1, ...]: an action, and what arrived after it."""
    env_output, agent_output = stored.env_output, stored.agent_output
    reward = env_output.reward[0].numpy()
    is_first = env_output.is_first[0].numpy()[-len(reward) :]  # frames of stacks come before
    return pd.DataFrame(
        {
            "unroll": number,
            "learner_update": int(stored.learner_update[0]),
            "step": np.arange(len(reward) - 1),
            "action": list(agent_output.action[0].numpy()[:-1]),
            "reward": reward[1:],
            "discount": env_output.discount[0].numpy()[1:],
            "starts_again": is_first[1:],  # then it is no transition
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
    played = steps[~steps.starts_again]
    print(played.groupby("action").reward.describe()[["count", "mean", "min", "max"]])
