"""Evaluates weights of a run by the papers' protocol: whole episodes, raw returns."""

import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from laser_tf import array_function, types
from laser_tf.environments import factory
from laser_tf.evaluation import episode_runner, restricted_policy
from laser_tf.host import hardware
from laser_tf.training import actor, assembly, run_config

_TRAINING_STREAM = 1  # Of the run's seed, so that no evaluation repeats episodes of the actors.


class Evaluator:
    """Runs whole episodes with the weights of a run, during training and after it.

    Environments and agent are created once. Successive evaluations continue their random streams,
    so that their errors are independent. Not thread-safe.

    Attributes:
      environment: The environments.
      num_episodes: Number of episodes of an evaluation, of all tasks together.
      finished_episodes: Episodes of the last evaluation.
      actions: Actions of the last evaluation, [N, ...] for each step.
    """

    def __init__(
        self,
        config: run_config.RunConfig,
        episodes: int,
        *,
        seeds: tuple[int, int],
        traceback_directory: pathlib.Path | None = None,
        greedy: bool = False,
        history_length: int = 0,
    ):
        """Creates environments and an agent.

        Args:
          config: Configuration of the run, with the environments of the evaluation.
          episodes: Number of episodes of each task, at least 1.
          seeds: Seeds of the first environment and of sampled actions.
          traceback_directory: Directory for tracebacks of failed environments; None to drop them.
          greedy: Whether to take the action of the largest probability or value.
          history_length: Agent steps of an episode that the policy sees; 0 for all.

        For the errors see `factory.make_environment` and `restricted_policy.RestrictedPolicy`.
        """
        self._config = config.environment
        self._episodes = episodes
        num_tasks = len(config.environment.tasks)
        self.num_episodes = episodes * num_tasks
        self.environment = factory.make_environment(
            config.environment,
            seed=seeds[0],
            num_envs=episode_runner.environments_per_task(episodes, num_tasks),
            traceback_directory=traceback_directory,
        )
        dtype, _ = hardware.choose_compute_dtype(config.learner.compute_dtype)
        self._agent = assembly.build_agent(
            config, self.environment.spec(), dtype, seeds[1], is_evaluating=True
        )
        acting = self._agent, self.environment, config.replay.frame_stack
        self._policy: actor.ActingPolicy | restricted_policy.RestrictedPolicy
        if history_length:
            self._policy = restricted_policy.RestrictedPolicy(*acting, history_length)
        else:
            self._policy = actor.ActingPolicy(*acting)
        self._best = array_function.ArrayFunction(self._agent.greedy_action) if greedy else None
        self.finished_episodes: list[episode_runner.Episode] = []
        self.actions: list[np.ndarray] = []

    @classmethod
    def during_training(
        cls,
        config: run_config.RunConfig,
        *,
        evaluator_id: int = 0,
        env_frames: int = 0,
        traceback_directory: pathlib.Path | None = None,
    ) -> "Evaluator":
        """Creates the evaluator of a run's periodic evaluations.

        Evaluators of a run with different ids, or with different `env_frames` of the run at their
        start, have different seeds.
        """
        entropy = [config.run.seed, _TRAINING_STREAM, evaluator_id, env_frames]
        sequence = np.random.SeedSequence(entropy)
        environment_seed, action_seed = (int(seed) >> 2 for seed in sequence.generate_state(2))
        return cls(
            config,
            config.run.periodic_evaluation_episodes,
            seeds=(environment_seed, action_seed),
            traceback_directory=traceback_directory,
        )

    def evaluate(
        self,
        weights: Sequence[np.ndarray],
        env_frames: int,
        learner_updates: int,
        on_step: Callable[[Sequence[episode_runner.Episode], int], None] = lambda *_: None,
    ) -> dict[str, Any]:
        """Runs the episodes of each task with given weights.

        The weights are values of the `acting_variables` of the run's agent, after `env_frames` and
        `learner_updates`. For `on_step` and the errors see `episode_runner.run_episodes`. Weights
        of another agent raise ValueError, and no variable is assigned.

        Returns:
          The result of `episode_runner.summarise_returns`, `env_frames`, `learner_updates`,
          `seconds` (duration), and for a restricted history the result of
          `RestrictedPolicy.agreement`.
        """
        start = time.monotonic()
        variables = self._agent.acting_variables
        given, needed = [array.shape for array in weights], [tuple(v.shape) for v in variables]
        if given != needed:
            raise ValueError(f"weights must have the shapes {needed}, got {given}.")
        for variable, array in zip(variables, weights, strict=True):
            variable.assign(array)
        limit = self._config.max_steps_per_episode
        self.finished_episodes, self.actions = episode_runner.run_episodes(
            self.environment, self._act, self._episodes, limit, on_step
        )
        summary = {
            "env_frames": env_frames,
            "learner_updates": learner_updates,
            "seconds": round(time.monotonic() - start, 2),
            **episode_runner.summarise_returns(self._config, self.finished_episodes),
        }
        if isinstance(self._policy, restricted_policy.RestrictedPolicy):
            summary |= self._policy.agreement(self.finished_episodes)
        return summary

    def _act(self, env_output: types.EnvOutput) -> np.ndarray:
        agent_output = self._policy(env_output)
        return self._best(agent_output) if self._best else agent_output.action

    def close(self) -> None:
        """Closes the environments."""
        self.environment.close()
