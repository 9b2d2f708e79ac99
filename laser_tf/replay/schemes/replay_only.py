"""Batches of replayed unrolls alone (ACER with continuous actions)."""

import dataclasses

from laser_tf.replay.schemes import table_replay


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplayOnly(table_replay.PacedReplay):
    """Unrolls from replay, an update for every `steps_per_update` new agent steps."""

    scheme: str = "replay_only"
