"""What uniformly random actions reach: the zero of normalised scores.

python -m launch.random_play --config=configs/laser_vizdoom.py --config.environment.task=my_way_home
"""

from laser_tf.host import interruption

if __name__ == "__main__":
    interruption.before_imports()

import json

import numpy as np
from absl import flags

from laser_tf.environments import factory, random_streams
from laser_tf.evaluation import episode_player
from laser_tf.monitoring import progress
from laser_tf.training import run_config
from launch import command_line

_CONFIG = command_line.define_config("configs/laser_atari.py")
_EPISODES = flags.DEFINE_integer("episodes", 200, "episodes of each task")
_SEED = flags.DEFINE_integer("seed", 12345, "of environments and actions")


def main() -> None:
    """Plays the tasks of a configuration and prints what they returned."""
    if _EPISODES.value < 1:
        raise command_line.UsageError(f"--episodes is {_EPISODES.value}: use 1 or more")
    config = run_config.parse(command_line.config_values(_CONFIG)).environment
    environment = factory.make_environment(config, seed=_SEED.value)
    random = random_streams.action_generator(_SEED.value)
    player = episode_player.EpisodePlayer(
        environment,
        lambda _: environment.random_actions(random),
        config.max_steps_per_episode,
    )
    title = f"random play of {config.task}"
    with progress.EvaluationDisplay(_EPISODES.value * len(config.tasks), title) as display:
        games = episode_player.by_task(player.play(_EPISODES.value, display.update))
    environment.close()
    print(
        json.dumps(
            {
                task: _summarise([game.episode_return for game in of_task])
                for task, of_task in zip(config.tasks, games, strict=True)
            },
            indent=2,
        )
    )


def _summarise(returns: list[float]) -> dict[str, float | None]:
    count = len(returns)
    return {
        "mean_return": float(np.mean(returns)),
        "standard_error": float(np.std(returns, ddof=1) / count**0.5) if count > 1 else None,
        "episodes": count,
    }


if __name__ == "__main__":
    command_line.run(main)
