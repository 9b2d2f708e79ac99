"""Training: the learner's loop, with actors in this process or in other processes."""

import contextlib
import dataclasses
import functools
import logging
import pathlib
import time
from collections.abc import Callable, Sequence

import tensorflow as tf

from laser_tf import config_values, types
from laser_tf.environments import episode_statistics
from laser_tf.host import hardware
from laser_tf.monitoring import episode_log, progress, reporting, tensorboard
from laser_tf.replay import batch_sources, client, server, stored_unroll, turn_taking
from laser_tf.training import (
    acting,
    assembly,
    evaluations,
    initial_weights,
    learner_checkpoints,
    membership,
    run_config,
    saver,
)
from laser_tf.training import callbacks as callbacks_module
from laser_tf.workdir import run_directory


class Training:
    """Trains a run, new or resumed from its directory, until its budget is spent."""

    def __init__(
        self,
        config: run_config.RunConfig,
        workdir: pathlib.Path,
        spec: types.EnvironmentSpec,
        sweep_membership: membership.Membership | None = None,
        initial: initial_weights.InitialWeights | None = None,
        connect_actors: acting.ConnectActors | None = None,
        strategy: tf.distribute.Strategy | None = None,
        make_saving_context: server.MakeContext = contextlib.nullcontext,
        callbacks: Sequence[callbacks_module.Callback] = (),
    ):
        """Builds the learner and restores the newest checkpoint, if any.

        Call after `run_directory.open_workdir`. Without a checkpoint, the weights are `initial` or
        random. Without `connect_actors`, the actor is a thread. This process is the chief of the
        strategy. `make_saving_context` returns a context that is entered while replay is saved.

        Raises:
          WorkdirError: If all checkpoints are damaged.
          ConfigError: If `initial` has weights of other shapes than the agent.
        """
        self._start = time.monotonic()
        self._config = config
        self._workdir = workdir
        self._spec = spec
        self._membership = sweep_membership or membership.Membership()
        self._make_saving_context = make_saving_context
        self._turn_taking = turn_taking.TurnTaking() if config.run.serial else None
        self._connect_actors = connect_actors or functools.partial(
            acting.start_actor, config, workdir, self._membership, self._turn_taking
        )
        dtype, why_dtype = hardware.choose_compute_dtype(config.learner.compute_dtype)
        jit, why_jit = hardware.choose_jit_compile(config.learner.jit_compile)
        on = "on" if jit else "off"
        logging.info("Computing in %s (%s) with XLA %s (%s)", dtype, why_dtype, on, why_jit)
        # For the log and TensorBoard: the agent resolves its configuration itself.
        self._resolved_config = dataclasses.replace(
            config, agent=config.agent.for_actions(spec.action)
        )
        for key, value in dataclasses.asdict(self._resolved_config.agent).items():
            configured = getattr(config.agent, key)
            if value != configured:
                logging.info("Using agent.%s=%s instead of %s", key, value, configured)

        self._learner = assembly.build_learner(
            config, spec, dtype, jit=jit, member_index=self._membership.index, strategy=strategy
        )
        self.counters = self._learner.counters
        self._signature = assembly.unroll_signature(config, spec, self._learner.agent)
        self._checkpoints = learner_checkpoints.LearnerCheckpoints(
            workdir / run_directory.LEARNER_CHECKPOINTS, self._learner
        )
        self.resumed = self._restore(initial)
        # Python copies of the counters, because each read of a variable leaks 16 bytes.
        self._learner_updates = int(self.counters.learner_updates.numpy())
        self._agent_steps = int(self.counters.agent_steps.numpy())
        self.returns = reporting.EpisodeReturns(config.environment.suite, config.environment.tasks)
        self._episodes = episode_log.EpisodeLog(workdir, config.environment.tasks)
        self.learner_seconds = 0.0  # Spent in updates by this process.
        self._changes: dict[str, str] = {}  # Settings that `--override` has changed, as text.
        run_view = callbacks_module.Run(
            config,
            workdir,
            lambda: (self.env_frames, self._learner_updates),
            self.returns.mean_return,
            float(self.counters.wall_seconds.numpy()),
        )
        self._callbacks = callbacks_module.Callbacks(callbacks, run_view)

    def _restore(self, initial: initial_weights.InitialWeights | None) -> bool:
        """Assigns weights for all learners; returns whether they are from a checkpoint."""
        is_restored = self._checkpoints.restore() is not None
        if initial and not is_restored:
            initial_weights.assign(initial, self._learner.agent)
            updates = f"{initial.learner_updates:,}"
            logging.info("Loaded weights of %s after %s updates", initial.source, updates)
        # In a sweep, the restored values stay, because the sweep may have changed them.
        if is_restored and not self._membership.name:
            # `--override` may have changed hyper-parameters since the checkpoint.
            values = config_values.flatten(dataclasses.asdict(self._config))
            # R2D2 has no entropy cost, and a user's agent may have one without a configuration key.
            known = self._learner.hyperparameter_variables.keys() & values.keys()
            tunable = self._config.learner.tunable
            self._learner.set_hyperparameters({k: values[k] for k in tunable if k in known})
        self._learner.broadcast_from_chief()
        return is_restored

    def _record_overrides(self) -> dict[str, str]:
        """Records and logs the changes of `--override`; returns them as text by key."""
        changes = {}
        for entry in run_directory.record_overrides(self._workdir, self.env_frames):
            for key, change in entry["changes"].items():
                changes[key] = f"{change['now']} (before: {change['before']})"
                logging.info("Changed %s to %s", key, changes[key])
        return changes

    @property
    def env_frames(self) -> int:
        """Env frames so far: counted agent steps (see `learner.Update`) times action repeat."""
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

        `should_stop`, which may raise an error, is polled before each update and every 0.5 s while
        the learner waits for a batch. There are no periodic evaluations without an evaluator.

        Raises:
          EnvironmentFailedError, NonFiniteLossError: If the run cannot continue. It is saved.
          LearnersLostError: If another learner has ended. The run is saved.
          NonFiniteWeightsError: If a weight is not finite. Older checkpoints are unchanged.
          lock.LostError: If the run directory no longer belongs to this process.
          WorkdirError: If a log is damaged or the last checkpoint cannot be written.
          ValueError: If the replay's port is in use, shared replay holds unrolls of
            another signature, or the sweep's population rejects a hyper-parameter.
          Exception: The error of a callback. The run is saved.
        """
        evaluations_ = evaluations.Evaluations(
            self._config,
            self._workdir,
            self._learner.agent,
            evaluator,
            functools.partial(self._callbacks.call, "on_evaluation"),
        )
        self._resume_membership_and_logs(evaluations_)
        self._changes = self._record_overrides()
        with self._callbacks.running():
            self._train(should_stop, show, evaluations_)

    def _train(
        self,
        should_stop: Callable[[], bool],
        show: Callable[[progress.Progress], None],
        evaluations_: evaluations.Evaluations,
    ) -> None:
        self._membership.start()
        actors = self._connect_actors(
            self._learner, self._signature, self._add_episode, not self.resumed
        )
        with contextlib.ExitStack() as on_error:
            on_error.callback(actors.learner_client.stop)
            on_error.callback(actors.stop)
            saver_ = saver.Saver(
                self._config.run,
                self._workdir,
                self._checkpoints,
                actors.learner_client,
                self.counters,
                self._make_saving_context,
                self._episodes.flush,
            )
            batches = assembly.make_batches(
                self._config,
                actors.learner_client,
                self._signature,
                self._learner,
                self._spec,
                self._turn_taking,
            )
            on_error.pop_all()
        has_failed = True
        try:
            self._learn(should_stop, show, actors, batches, saver_, evaluations_)
            has_failed = False
        finally:
            actors.stop()
            batches.close()
            self._learner.discard_staged()
            self._count_unreported_steps(batches)
            try:
                # An error ends the run at once.
                checkpoint = saver_.save_all(lambda: has_failed or should_stop())
            finally:
                actors.learner_client.stop()
            self._log_skipped_updates_and_faults(actors)
        self._callbacks.report_episodes()
        self._callbacks.call("on_checkpoint", checkpoint)
        # Before the final evaluation of the caller, which the other members do not wait for.
        self._membership.close(finished=self.finished)

    def _resume_membership_and_logs(self, evaluations_: evaluations.Evaluations) -> None:
        """Rejoins the sweep, drops log rows newer than the checkpoint, restores the mean return."""
        if self.resumed:
            self._episodes.check()
            evaluations_.log.check()
        replaced_at = self._membership.resume(self._learner, self.env_frames, self.returns)
        frames = self.env_frames if self.resumed else None
        for row in self._episodes.resume(frames):
            # Earlier episodes belong to weights that have since been replaced by another member's.
            if row.env_frames > replaced_at:
                self.returns.add(row, is_new=False)
        evaluations_.resume(frames)

    def _count_unreported_steps(self, batches: batch_sources.BatchSource) -> None:
        """Adds to the counters the steps that actors have written since the last batch.

        Only schemes without online entries have unreported steps. A resumed run would miss them,
        because it counts only steps that are written later. Does nothing once the budget is spent.
        """
        if not self.finished:
            steps = batches.unreported_steps
            self.counters.agent_steps.assign_add(steps)
            self._agent_steps += steps

    def _log_skipped_updates_and_faults(self, actors: acting.Actors) -> None:
        if skipped := int(self.counters.non_finite_updates.numpy()):
            # `_learner_updates` excludes an update that raised an error.
            updates = int(self.counters.learner_updates.numpy())
            logging.warning(
                "Skipped %d of %d updates, because their loss or gradient was not finite "
                "(learner/non_finite_updates in TensorBoard)", skipped, updates,
            )  # fmt: skip
        counts = [
            f"{name} {count:.0f}"
            for name, count in actors.metrics().items()
            if count and name.startswith("environment/")
        ]
        if counts:
            logging.warning(
                "Environment faults, each of which ended an episode: %s", ", ".join(counts)
            )

    def _add_episode(self, episode: episode_statistics.Episode) -> None:
        task = self._config.environment.tasks[episode.task]
        row = episode_log.Row(self.env_frames, task, episode.episode_return, episode.length)
        self.returns.add(row)
        self._episodes.add(row)
        self._callbacks.add_episode(row)

    def _learn(
        self,
        should_stop: Callable[[], bool],
        show: Callable[[progress.Progress], None],
        actors: acting.Actors,
        batches: batch_sources.BatchSource,
        saver_: saver.Saver,
        evaluations_: evaluations.Evaluations,
    ) -> None:
        config, replay = self._config, actors.learner_client
        writer = tensorboard.MetricsWriter(self._workdir / "tensorboard")
        writer.hyperparameters(config_values.flatten(dataclasses.asdict(self._resolved_config)))
        if self._changes:
            writer.write_table(self.env_frames, "overrides", self._changes)
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
        stalls = acting.StallDetector(actors)
        metrics = functools.partial(self._metrics, actors, batches)

        def check_and_should_stop() -> bool:
            actors.check()
            self._membership.check()
            self._callbacks.report_episodes()
            return should_stop() or self._callbacks.should_stop()

        def check_stall_and_should_stop() -> bool:
            stalls.check()
            return check_and_should_stop()

        observe_updates = self._callbacks.observe_updates
        while not self.finished:
            self._membership.throttle(self.env_frames, check_and_should_stop)
            batch = batches.get(check_stall_and_should_stop)
            if not self._learner.all_agree(batch is not None):
                break
            stalls.reset()
            values, seconds = self._update(batch, replay)
            if observe_updates:
                values |= self._learner.metrics()
                self._callbacks.call("on_update", values)
            reporter.add_update(values, seconds)
            if row := reporter.report(self.env_frames, replay.fill_level, metrics):
                self._callbacks.call("on_metrics", row)
            if self._membership.apply_decisions(self._learner, self.env_frames):
                saver_.save_weights_next()
            if checkpoint := saver_.save_when_due():
                self._callbacks.call("on_checkpoint", checkpoint)
            evaluations_.update(self.env_frames, self._learner_updates, writer)
        if row := reporter.report(self.env_frames, replay.fill_level, metrics, last=True):
            self._callbacks.call("on_metrics", row)
        evaluations_.finish(writer, should_stop)

    def _update(
        self, batch: stored_unroll.Batch, replay: client.ReplayClient
    ) -> tuple[dict[str, float], float]:
        """Runs an update; returns the age of its experience and its duration in seconds."""
        start = time.monotonic()
        new_steps, priorities = self._learner.update(batch)
        self._learner_updates += 1
        self._agent_steps += new_steps
        values = stored_unroll.experience_age(batch, self._learner_updates, self._membership.index)
        if priorities is not None:
            replay.update_priorities(batch, priorities)
        seconds = time.monotonic() - start
        if not self.learner_seconds:
            elapsed = time.monotonic() - self._start
            logging.info("Finished the first update %.1f s after the start", elapsed)
        self.learner_seconds += seconds
        return values, seconds

    def _metrics(
        self, actors: acting.Actors, batches: batch_sources.BatchSource
    ) -> dict[str, float]:
        """Returns the metrics of updates, actors and replay, lost unrolls and skipped updates."""
        skipped = float(self.counters.non_finite_updates.numpy())
        values = self._learner.metrics() | actors.metrics() | actors.learner_client.metrics()
        # Unrolls are numbered, and those whose numbers are missing count as lost. Each of several
        # learners receives only some unrolls: missing numbers mean nothing.
        lost_and_duplicated = batches.metrics() if self._config.cluster.learners == 1 else {}
        return values | lost_and_duplicated | {"learner/non_finite_updates": skipped}
