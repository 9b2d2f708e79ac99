"""Training: the learner's loop, with actors in this process or in others."""

import contextlib
import dataclasses
import functools
import logging
import pathlib
import time
from collections.abc import Callable, Mapping

import tensorflow as tf

from laser_tf import config_values, types
from laser_tf.environments import episode_statistics
from laser_tf.host import hardware
from laser_tf.monitoring import episode_log, evaluation_log, reporting, tensorboard
from laser_tf.replay import (
    batch_sources,
    client,
    connection,
    external_server,
    server,
    stored_unroll,
)
from laser_tf.replay.schemes import base as schemes_base
from laser_tf.training import (
    acting,
    actor,
    assembly,
    evaluations,
    experience_age,
    initial_weights,
    learner,
    learner_checkpoints,
    membership,
    run_config,
    saver,
)
from laser_tf.workdir import layout

# What a learner, the signature of an unroll, what takes finished episodes and whether the run is
# new make of actors that other processes have begun.
ActElsewhere = Callable[
    [
        learner.Learner,
        stored_unroll.StoredUnroll,
        Callable[[episode_statistics.Episode], None],
        bool,
    ],
    acting.Acting,
]

_STALL_SECONDS = 60.0  # without experience, after which the learner says so


class Training:
    """One run: new, or resumed from its folder, and driven to its budget."""

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
        """Builds the learner and restores what the folder holds; nothing moves yet.

        Args:
          config: of the run.
          workdir: its folder, opened.
          spec: of its environment, see `factory.environment_spec`.
          member: of a sweep, where the run belongs to one.
          initial: what a run begins from that has no checkpoint yet.
          act_elsewhere: finds actors in other processes; None: an actor acts in this one.
          strategy: of several learners, whose chief this is, from `strategies.make`; None for one.
          saving_replay: entered while replay is saved.

        Raises:
          WorkdirError: if none of the folder's checkpoints can be read.
          ValueError: if `initial` does not fit.
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
            config,
            spec,
            self._dtype,
            jit=jit,
            member=self._member_index,
            strategy=strategy,
        )
        self._signature = assembly.unroll_signature(config, spec, self._learner.agent)
        self.returns = reporting.EpisodeReturns(config.environment.suite, config.environment.tasks)
        self._checkpoints = learner_checkpoints.LearnerCheckpoints(
            workdir / layout.LEARNER_CHECKPOINTS, self._learner
        )
        number = self._checkpoints.restore()
        self.resumed = number is not None
        self._row_counts = {} if number is None else self._checkpoints.read_row_counts(number)
        if initial and not self.resumed:
            initial_weights.assign(initial, self._learner.agent)
            logging.info(
                "weights of %s after %s updates", initial.source, f"{initial.learner_updates:,}"
            )
        self._learner.take_from_chief()
        self.counters = self._learner.counters
        # The same as numbers of Python's: TensorFlow keeps 16 bytes of every look at a variable.
        self._learner_updates = int(self.counters.learner_updates.numpy())
        self._agent_steps = int(self.counters.agent_steps.numpy())
        self._episodes = episode_log.EpisodeLog(workdir, config.environment.tasks)
        self.learner_seconds = 0.0  # spent in updates by this process

    @property
    def env_frames(self) -> int:
        """Frames learned from so far, before action repeat."""
        return self._agent_steps * self._config.environment.action_repeat

    @property
    def finished(self) -> bool:
        """Whether the budget is spent."""
        return self._agent_steps >= self._config.total_agent_steps

    def run(
        self,
        should_stop: Callable[[], bool],
        display: reporting.Display,
        evaluator: evaluations.Evaluator | None = None,
    ) -> None:
        """Acts and learns until the budget is spent or it is told to stop, then saves everything.

        Args:
          should_stop: asked all the time.
          display: of the progress.
          evaluator: plays beside the training; None: nobody does.

        Raises:
          EnvironmentFailedError: if the environments cannot go on; the state before is saved.
          NonFiniteLossError: see `learner.Learner.update`; the state before is saved.
          WorkdirError: if the episodes' log or the last checkpoint cannot be written.
          ValueError: if the replay's port is in use, a shared replay takes other unrolls or serves
            another run, or the sweep's population refuses something.
          StaleError: if another process is this member of the sweep; the state before is saved.
        """
        member = self._member
        beside = evaluations.Evaluations(
            self._config, self._workdir, self._learner.agent, evaluator
        )
        self._resume_logs(beside)
        if member:
            member.start()
        actors = self._begin_acting()
        batches = assembly.make_batches(
            self._config, actors.replay, self._signature, self._learner, self._spec
        )
        saving = saver.Saver(
            self._config.run,
            self._workdir,
            self._checkpoints,
            actors.replay,
            self.counters,
            self._saving_replay,
            functools.partial(self._flush_logs, beside),
        )
        try:
            self._learn(should_stop, display, actors, batches, saving, beside)
        finally:
            actors.stop()
            batches.close()
            self._count_unconsumed_steps(batches)
            try:
                saving.save_all()
            finally:
                actors.replay.stop()
            self._tell_losses(actors.faults())
        if member:
            # Nobody has to wait while the agent is evaluated.
            member.close(finished=self.finished)

    def _resume_logs(self, beside: evaluations.Evaluations) -> None:
        """Drops the rows of logs beyond the checkpoint; writes nothing if a log is rejected."""
        if self.resumed:
            self._episodes.check()
            beside.check()
        copied = -1
        if self._member:
            copied = self._member.resume(self._learner, self.env_frames, self.returns)
        frames = self.env_frames if self.resumed else None
        written = self._row_counts.get(episode_log.FILE, 0)
        for episode in self._episodes.resume(frames, newer_than=copied, written=written):
            self.returns.add(episode)
        beside.resume(frames, self._row_counts.get(evaluation_log.FILE, 0))

    def _flush_logs(self, beside: evaluations.Evaluations) -> dict[str, int]:
        """Writes pending episodes; returns the number of rows in each log."""
        self._episodes.flush()
        return {
            episode_log.FILE: self._episodes.row_count,
            evaluation_log.FILE: beside.row_count,
        }

    def _count_unconsumed_steps(self, batches: batch_sources.BatchSource) -> None:
        """Counts steps that have left the queue: the resumed run cannot count them.

        A run that has spent its budget ends with the steps of its updates.
        """
        if not self.finished:
            steps = batches.unconsumed_steps
            self.counters.agent_steps.assign_add(steps)
            self._agent_steps += steps

    def _tell_losses(self, faults: Mapping[str, float]) -> None:
        """Says what was lost to values that are not finite and to failed environments, if any."""
        if dropped := int(self.counters.non_finite_updates.numpy()):
            # Not our own count, which lacks the update that ended the run.
            updates = int(self.counters.learner_updates.numpy())
            logging.warning(
                "%d of %d updates were dropped, as their loss or gradient was not finite "
                "(learner/non_finite_updates in TensorBoard)", dropped, updates,
            )  # fmt: skip
        if counts := [f"{name} {count:.0f}" for name, count in faults.items() if count]:
            logging.warning(
                "faults of the environments, each of which cost an episode: %s", ", ".join(counts)
            )

    def _open_replay(self) -> client.ReplayClient:
        config = self._config
        if self._member and self._member.replay_address:
            queue = schemes_base.queue_of(self._member.name)
            replay = connection.ReplayConnection(self._member.replay_address, config.replay, queue)
            replay.check(self._signature)
            replay.start_polling()
            return client.LearnerReplay(replay)
        if config.replay.address:
            run = external_server.name_of_run(self._workdir)
            return external_server.connect(
                config.replay, self._signature, run, is_new=not self.resumed
            )
        served = server.ReplayServer(
            config.replay,
            self._signature,
            self._workdir / layout.REPLAY_CHECKPOINT,
            config.run.replay_port,
        )
        served.guard_memory()
        if self.resumed and config.replay.replay_table and not served.is_restored:
            logging.warning("Found no usable replay checkpoint: the run resumes with empty replay")
        return client.LearnerReplay(served.connect(), served)

    def _begin_acting(self) -> acting.Acting:
        if self._act_elsewhere:
            return self._act_elsewhere(
                self._learner, self._signature, self._add_episode, not self.resumed
            )
        return acting.LocalActing(
            self._config,
            self._open_replay(),
            self._signature,
            self._learner,
            dtype=self._dtype,
            workdir=self._workdir,
            member=self._member_index,
            on_episode=self._add_episode,
        )

    def _add_episode(self, episode: episode_statistics.Episode) -> None:
        self.returns.add(episode)
        self._episodes.add(self.env_frames, episode)

    def _learn(
        self,
        should_stop: Callable[[], bool],
        display: reporting.Display,
        actors: acting.Acting,
        batches: batch_sources.BatchSource,
        saving: saver.Saver,
        beside: evaluations.Evaluations,
    ) -> None:
        """The learning loop."""
        has_to_stop = functools.partial(self._has_to_stop, actors, should_stop)
        watch = actor.StallWatch(actors, _STALL_SECONDS)
        counts = functools.partial(self._counts, actors, batches)
        config, replay = self._config, actors.replay
        with tensorboard.MetricsWriter(self._workdir / "tensorboard") as writer_:
            writer_.hyperparameters(config_values.flatten(dataclasses.asdict(config)))
            reporter = reporting.Reporter(
                display,
                writer_,
                self.returns,
                self._episodes,
                config.run.metrics_seconds,
                metrics_frames=-(-config.run.env_frames // reporting.ROWS),
                env_frames=self.env_frames,
                wall_seconds=float(self.counters.wall_seconds.numpy()),
            )
            while not self.finished:
                if self._member:
                    self._member.throttle(self.env_frames, has_to_stop)
                batch = batches.get(watch.beside(has_to_stop))
                if not self._learner.all_agree(batch is not None):
                    break
                watch.fed()
                start = time.monotonic()
                values, priorities = self._learner.update(batch)
                self._learner_updates += 1
                self._agent_steps += int(values[learner.NEW_STEPS])
                values |= experience_age.metrics(batch, self._learner_updates, self._member_index)
                if config.replay.uses_priorities:
                    replay.take_priorities(batch, priorities)
                busy = time.monotonic() - start
                self.learner_seconds += busy
                reporter.add_update(values, busy)
                reporter.report(self.env_frames, replay.fill, counts)
                if self._member and self._member.after_update(self._learner, self.env_frames):
                    saving.make_weights_due()
                saving.save_when_due()
                beside.offer(self.env_frames, self._learner_updates, writer_)
            beside.finish(writer_, should_stop)
            reporter.report(self.env_frames, replay.fill, counts, last=True)

    def _has_to_stop(self, actors: acting.Acting, should_stop: Callable[[], bool]) -> bool:
        actors.check()
        if self._member:
            self._member.check()
        return should_stop()

    def _counts(
        self, actors: acting.Acting, batches: batch_sources.BatchSource
    ) -> dict[str, float]:
        """What actors and replay measure, unrolls lost, updates dropped in all of the run."""
        dropped = float(self.counters.non_finite_updates.numpy())
        values = actors.metrics() | actors.replay.metrics()
        # Of several learners none sees all unrolls of an actor.
        unrolls = batches.metrics() if self._config.cluster.learners == 1 else {}
        return values | unrolls | {"learner/non_finite_updates": dropped}
