"""Training: the learner's loop, with actors in this process or in other processes."""

import contextlib
import dataclasses
import functools
import logging
import pathlib
import time
from collections.abc import Callable

import tensorflow as tf

from laser_tf import config_values, types
from laser_tf.environments import episode_statistics
from laser_tf.host import hardware
from laser_tf.monitoring import episode_log, progress, reporting, tensorboard
from laser_tf.replay import batch_sources, client, stored_unroll
from laser_tf.training import (
    acting,
    assembly,
    evaluations,
    initial_weights,
    learner,
    learner_checkpoints,
    membership,
    run_config,
    saver,
)
from laser_tf.workdir import run_directory

# Connects to actors in other processes, given the learner, the signature of an unroll, a consumer
# of finished episodes and whether the run is new.
ActElsewhere = Callable[
    [
        learner.Learner,
        stored_unroll.StoredUnroll,
        Callable[[episode_statistics.Episode], None],
        bool,
    ],
    acting.Acting,
]

_STALL_SECONDS = 60.0  # without experience, until a warning


class Training:
    """A run, new or resumed from its directory, which trains until its budget is spent."""

    def __init__(
        self,
        config: run_config.RunConfig,
        workdir: pathlib.Path,
        spec: types.EnvironmentSpec,
        member: membership.Membership | None = None,
        initial: initial_weights.InitialWeights | None = None,
        act_elsewhere: ActElsewhere | None = None,
        strategy: tf.distribute.Strategy | None = None,
        saving_replay: saver.Saving = contextlib.nullcontext,
    ):
        """Builds the learner and restores the checkpoint of the run directory.

        Args:
          config: Configuration of the run.
          workdir: Run directory, opened.
          spec: Specs of the environment, see `factory.environment_spec`.
          member: Connection to the sweep of the run; None without a sweep.
          initial: Weights of a run without a checkpoint; None for random weights.
          act_elsewhere: Connects to actors in other processes; None acts in this process.
          strategy: Strategy of several learners, from `strategies.make`; this process is their
            chief. None for one learner.
          saving_replay: Context in which replay is saved.

        Raises:
          WorkdirError: If all checkpoints are damaged.
          ValueError: If `initial` does not fit.
        """
        if config.learner.replicas > 1 and not strategy:
            raise ValueError(f"learner.replicas is {config.learner.replicas}, without a strategy")
        self._config = config
        self._workdir = workdir
        self._spec = spec
        self._member = member
        self._act_elsewhere = act_elsewhere
        self._saving_replay = saving_replay
        self._member_index = member.index if member else 0
        self._dtype, why_dtype = hardware.choose_compute_dtype(config.learner.compute_dtype)
        jit, why_jit = hardware.choose_jit_compile(config.learner.jit_compile)
        on = "on" if jit else "off"
        logging.info("compute dtype: %s (%s); XLA: %s (%s)", self._dtype, why_dtype, on, why_jit)

        self._learner = assembly.build_learner(
            config, spec, self._dtype, jit=jit, member=self._member_index, strategy=strategy
        )
        self.counters = self._learner.counters
        self._signature = assembly.unroll_signature(config, spec, self._learner.agent)
        self._checkpoints = learner_checkpoints.LearnerCheckpoints(
            workdir / run_directory.LEARNER_CHECKPOINTS, self._learner
        )
        self.resumed = self._checkpoints.restore() is not None
        if initial and not self.resumed:
            initial_weights.assign(initial, self._learner.agent)
            updates = f"{initial.learner_updates:,}"
            logging.info("weights of %s after %s updates", initial.source, updates)
        self._learner.take_from_chief()
        # Copies of the counters: TensorFlow keeps 16 bytes of each read of a variable.
        self._learner_updates = int(self.counters.learner_updates.numpy())
        self._agent_steps = int(self.counters.agent_steps.numpy())
        self.returns = reporting.EpisodeReturns(config.environment.suite, config.environment.tasks)
        self._episodes = episode_log.EpisodeLog(workdir, config.environment.tasks)
        self.learner_seconds = 0.0  # spent in updates by this process

    @property
    def env_frames(self) -> int:
        """Frames learned from so far, before action repeat."""
        return self._agent_steps * self._config.environment.action_repeat

    @property
    def finished(self) -> bool:
        """True once the budget is spent."""
        return self._agent_steps >= self._config.total_agent_steps

    def run(
        self,
        should_stop: Callable[[], bool],
        show: Callable[[progress.Progress], None],
        evaluator: evaluations.Evaluator | None = None,
    ) -> None:
        """Trains until the budget is spent or the run is stopped, then saves everything.

        Args:
          should_stop: Polled all the time; returns True to stop.
          show: Shows the progress.
          evaluator: Evaluates during training; None for no such evaluations.

        Raises:
          EnvironmentFailedError: If the environments cannot continue. The run is saved.
          NonFiniteLossError: See `learner.Learner.update`. The run is saved.
          WorkdirError: If a log is rejected or the last checkpoint cannot be written.
          ValueError: If the replay's port is in use, a shared replay has other unrolls or another
            run, or the sweep's population rejects a value.
        """
        evaluations_ = evaluations.Evaluations(
            self._config, self._workdir, self._learner.agent, evaluator
        )
        self._resume_logs(evaluations_)
        if self._member:
            self._member.start()
        actors = self._start_actors()
        batches = assembly.make_batches(
            self._config, actors.replay, self._signature, self._learner, self._spec
        )
        saver_ = saver.Saver(
            self._config.run,
            self._workdir,
            self._checkpoints,
            actors.replay,
            self.counters,
            self._saving_replay,
            functools.partial(self._flush_logs, evaluations_),
        )
        try:
            self._learn(should_stop, show, actors, batches, saver_, evaluations_)
        finally:
            actors.stop()
            batches.close()
            self._count_unconsumed_steps(batches)
            try:
                saver_.save_all()
            finally:
                actors.replay.stop()
            self._log_dropped_data(actors)
        if self._member:  # The other members do not wait for the evaluation of this member.
            self._member.close(finished=self.finished)

    def _resume_logs(self, evaluations_: evaluations.Evaluations) -> None:
        """Drops the rows of logs beyond the checkpoint; writes nothing if a log is rejected."""
        if self.resumed:
            self._episodes.check()
            evaluations_.log.check()
        copied = -1
        if self._member:
            copied = self._member.resume(self._learner, self.env_frames, self.returns)
        frames = self.env_frames if self.resumed else None
        for row in self._episodes.resume(frames, int(self.counters.episode_rows.numpy())):
            if row.env_frames > copied:  # Earlier returns are those of weights that were replaced.
                self.returns.add(row)
        evaluations_.resume(frames, int(self.counters.evaluation_rows.numpy()))

    def _flush_logs(self, evaluations_: evaluations.Evaluations) -> None:
        """Writes pending episodes and counts the rows of each log."""
        self._episodes.flush()
        self.counters.episode_rows.assign(self._episodes.row_count)
        self.counters.evaluation_rows.assign(evaluations_.log.row_count)

    def _count_unconsumed_steps(self, batches: batch_sources.BatchSource) -> None:
        """Counts steps that have left the queue, because a resumed run cannot count them.

        A run that has spent its budget ends with the steps of its updates.
        """
        if not self.finished:
            steps = batches.unconsumed_steps
            self.counters.agent_steps.assign_add(steps)
            self._agent_steps += steps

    def _log_dropped_data(self, actors: acting.Acting) -> None:
        """Logs how many updates and episodes were dropped."""
        if dropped := int(self.counters.non_finite_updates.numpy()):
            # `_learner_updates` lacks the update that ended the run.
            updates = int(self.counters.learner_updates.numpy())
            logging.warning(
                "%d of %d updates were dropped, as their loss or gradient was not finite "
                "(learner/non_finite_updates in TensorBoard)", dropped, updates,
            )  # fmt: skip
        if counts := [f"{name} {count:.0f}" for name, count in actors.faults().items() if count]:
            logging.warning(
                "faults of the environments, each of which cost an episode: %s", ", ".join(counts)
            )

    def _start_actors(self) -> acting.Acting:
        if self._act_elsewhere:
            return self._act_elsewhere(
                self._learner, self._signature, self._add_episode, not self.resumed
            )
        replay = assembly.open_replay(
            self._config, self._workdir, self._signature, self._member, is_new=not self.resumed
        )
        return acting.act_locally(
            self._config,
            replay,
            self._signature,
            self._learner,
            dtype=self._dtype,
            workdir=self._workdir,
            member=self._member_index,
            on_episode=self._add_episode,
        )

    def _add_episode(self, episode: episode_statistics.Episode) -> None:
        task = self._config.environment.tasks[episode.task]
        row = episode_log.Row(self.env_frames, task, episode.episode_return, episode.length)
        self.returns.add(row)
        self._episodes.add(row)

    def _learn(
        self,
        should_stop: Callable[[], bool],
        show: Callable[[progress.Progress], None],
        actors: acting.Acting,
        batches: batch_sources.BatchSource,
        saver_: saver.Saver,
        evaluations_: evaluations.Evaluations,
    ) -> None:
        """Learns until the budget is spent or the run is stopped."""
        config, replay = self._config, actors.replay
        writer = tensorboard.MetricsWriter(self._workdir / "tensorboard")
        writer.hyperparameters(config_values.flatten(dataclasses.asdict(config)))
        reporter = reporting.Reporter(
            show,
            writer,
            self.returns,
            self._episodes,
            config.run.metrics_seconds,
            metrics_frames=-(-config.run.env_frames // reporting.ROWS),
            env_frames=self.env_frames,
            wall_seconds=float(self.counters.wall_seconds.numpy()),
        )
        stalls = acting.StallDetector(actors, _STALL_SECONDS)
        metrics = functools.partial(self._metrics, actors, batches)

        def check_and_should_stop() -> bool:
            actors.check()
            if self._member:
                self._member.check()
            return should_stop()

        while not self.finished:
            if self._member:
                self._member.throttle(self.env_frames, check_and_should_stop)
            batch = batches.get(stalls.wrap(check_and_should_stop))
            if not self._learner.all_agree(batch is not None):
                break
            stalls.reset()
            reporter.add_update(*self._update(batch, replay))
            reporter.report(self.env_frames, replay.fill, metrics)
            if self._member and self._member.after_update(self._learner, self.env_frames):
                saver_.make_weights_due()
            saver_.save_when_due()
            evaluations_.update(self.env_frames, self._learner_updates, writer)
        evaluations_.finish(writer, should_stop)
        reporter.report(self.env_frames, replay.fill, metrics, last=True)

    def _update(
        self, batch: stored_unroll.Batch, replay: client.ReplayClient
    ) -> tuple[dict[str, float], float]:
        """Takes one step; returns its metrics and the seconds that it took."""
        start = time.monotonic()
        values, priorities = self._learner.update(batch)
        self._learner_updates += 1
        self._agent_steps += int(values[learner.NEW_STEPS])
        values |= learner.experience_age(batch, self._learner_updates, self._member_index)
        if self._config.replay.uses_priorities:
            replay.take_priorities(batch, priorities)
        seconds = time.monotonic() - start
        self.learner_seconds += seconds
        return values, seconds

    def _metrics(
        self, actors: acting.Acting, batches: batch_sources.BatchSource
    ) -> dict[str, float]:
        """Returns the metrics of actors and replay, lost unrolls and dropped updates."""
        dropped = float(self.counters.non_finite_updates.numpy())
        values = actors.metrics() | actors.replay.metrics()
        # None of several learners sees all unrolls of an actor.
        unrolls = batches.metrics() if self._config.cluster.learners == 1 else {}
        return values | unrolls | {"learner/non_finite_updates": dropped}
