"""LASER's sweep on Atari (Schmitt et al. 2020, sections 5.1 and 5.5), for accelerators.

Nine agents on one replay, with constant learning rates. Section 5.1 also says "96% replay data per
batch", which 32 and 128 rows are not: --config.replay.batch_size=800
--config.replay.replay_fraction=0.96 keeps the 32 online rows.
"""

import ml_collections

from configs import laser_atari_paper, sweep_laser_atari


def get_config() -> ml_collections.ConfigDict:
    """What differs from `laser_atari_paper`. Section numbers are LASER's."""
    config = laser_atari_paper.get_config()
    sweep = sweep_laser_atari.get_config()
    config.sweep, config.population = sweep.sweep, sweep.population  # grid: section 5.1
    config.replay.update(
        {
            "batch_size": 160,  # 32 online and 128 replayed unrolls, section 5.1
            "replay_fraction": 0.8,
            "capacity": 10_000_000,  # agent steps, of all; figure 3's: none is printed for Atari
        }
    )
    config.learner.learning_rate_schedule = "constant"  # section 5.1
    return config
