"""Whole episodes played again and again with the weights that a run has at the moment."""

import pathlib
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from laser_tf.environments import factory
from laser_tf.evaluation import episode_player, evaluation_summary
from laser_tf.host import hardware
from laser_tf.training import actor, assembly, run_config

_STREAM = 1  # of the run's seed, so that no evaluation plays the actors' games


class ContinuousEvaluator:
    """Plays what `launch.evaluate` would play with given weights, and writes nothing.

    Environments and the agent are made once; each evaluation goes on with their random streams, so
    that errors of two evaluations are independent. For one thread.
    """

    def __init__(
        self,
        config: run_config.RunConfig,
        *,
        attempt: int = 0,
        fault_folder: pathlib.Path | None = None,
    ):
        """Makes environments and an agent that acts as evaluations do.

        Args:
          config: of the run.
          attempt: how many evaluators the run has lost before: this one gets other seeds.
          fault_folder: gets the tracebacks of environments that fail; None: they are not kept.

        Raises:
          EnvironmentFailedError, ImportError, ValueError: see `factory.make_environment`.
        """
        self._config = config
        self._episodes = config.run.evaluation_episodes_beside
        seeds = np.random.SeedSequence([config.run.seed, _STREAM, attempt]).generate_state(2)
        environment_seed, action_seed = (int(seed) >> 2 for seed in seeds)
        self._environment = factory.make_environment(
            config.environment,
            seed=environment_seed,
            num_envs=episode_player.environments_at_once(
                self._episodes, len(config.environment.tasks)
            ),
            fault_folder=fault_folder,
        )
        dtype, _ = hardware.choose_compute_dtype(config.learner.compute_dtype)
        self._agent = assembly.build_agent(
            config, self._environment.spec(), dtype, action_seed, evaluating=True
        )
        self._policy = actor.ActingPolicy(self._agent, self._environment, config.replay.frame_stack)

    def evaluate(
        self, weights: Sequence[np.ndarray], env_frames: int, learner_updates: int
    ) -> dict[str, Any]:
        """Plays `run.evaluation_episodes_beside` whole episodes of each task.

        Args:
          weights: the values of `acting_variables` of the run's agent, in their order.
          env_frames: that these have learned from.
          learner_updates: behind them.

        Returns:
          What `evaluation_summary.summarise_returns` makes of the episodes, with `env_frames`,
          `learner_updates` and `seconds`, how long it took.

        Raises:
          EnvironmentFailedError: If the environments fail, or an episode does not end.
          ValueError: for weights of another agent; none of them is taken.
        """
        start = time.monotonic()
        self._take(weights)
        player = episode_player.EpisodePlayer(
            self._environment,
            lambda step: self._policy(step).action,
            self._config.environment.max_steps_per_episode,
        )
        games = player.play(self._episodes)
        return {
            **evaluation_summary.summarise_returns(self._config.environment, games),
            "env_frames": env_frames,
            "learner_updates": learner_updates,
            "seconds": round(time.monotonic() - start, 2),
        }

    def _take(self, weights: Sequence[np.ndarray]) -> None:
        variables = self._agent.acting_variables
        given, needed = [array.shape for array in weights], [tuple(v.shape) for v in variables]
        if given != needed:
            raise ValueError(f"weights have the shapes {given}: this agent's are {needed}")
        for variable, array in zip(variables, weights, strict=True):
            variable.assign(array)

    def close(self) -> None:
        """Closes the environments."""
        self._environment.close()
