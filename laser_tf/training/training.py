"""Training: an actor thread and the learner in one process, with replay embedded or shared."""

import dataclasses
import functools
import logging
import pathlib
import socket
import threading
import time
from collections.abc import Mapping

import numpy as np

from laser_tf import config_values
from laser_tf.environments import episode_statistics, factory
from laser_tf.host import hardware
from laser_tf.monitoring import episode_log, progress, reporting, tensorboard
from laser_tf.replay import (
    connection,
    replay_config,
    server,
    several_servers,
)
from laser_tf.training import (
    actor,
    assembly,
    batches,
    experience_age,
    initial_weights,
    learner_checkpoints,
    membership,
    run_config,
    saver,
    streams,
    weights,
)

_STALL_SECONDS = 60.0  # without experience, after which the learner says so


class Training:
    """One run: new, or resumed from its folder, and driven to its budget."""

    def __init__(
        self,
        config: run_config.RunConfig,
        workdir: pathlib.Path,
        member: membership.Membership | None = None,
        initial: initial_weights.InitialWeights | None = None,
    ):
        """Builds the learner and restores what the folder holds; nothing moves yet.

        Args:
          config: of the run.
          workdir: its folder, opened.
          member: of a sweep, where the run belongs to one.
          initial: what a run begins from that has no checkpoint yet.

        Raises:
          WorkdirError: if none of the folder's checkpoints can be read.
          ValueError: if `initial` does not fit.
        """
        self._config = config
        self._workdir = workdir
        self._member = member
        self._member_index = member.index if member else 0
        self._dtype, reason = hardware.choose_compute_dtype(config.learner.compute_dtype)
        logging.info("compute dtype: %s (%s)", self._dtype, reason)
        jit, reason = hardware.choose_jit_compile(config.learner.jit_compile)
        logging.info("XLA: %s (%s)", "on" if jit else "off", reason)

        probe = factory.make_environment(config.environment, seed=0, num_envs=1)
        self._learner = assembly.build_learner(
            config, probe, self._dtype, jit=jit, member=self._member_index
        )
        self._signature = assembly.unroll_signature(config, probe, self._learner.agent)
        self.returns = reporting.EpisodeReturns(config.environment.suite, probe.tasks)
        probe.close()
        self._checkpoints = learner_checkpoints.LearnerCheckpoints(
            workdir / "checkpoints/learner", self._learner
        )
        self.resumed = self._checkpoints.restore() is not None
        if initial and not self.resumed:
            initial_weights.assign(initial, self._learner.agent)
            logging.info(
                "weights of %s after %s updates", initial.source, f"{initial.learner_updates:,}"
            )
        self.counters = self._learner.counters
        # The same as numbers of Python's: TensorFlow keeps 16 bytes of every look at a variable.
        self._learner_updates = int(self.counters.learner_updates)
        self._agent_steps = int(self.counters.agent_steps)
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

    def run(self, stop: threading.Event, display: progress.ProgressDisplay) -> None:
        """Acts and learns until the budget is spent or `stop` is set, then saves everything.

        Raises:
          EnvironmentFailedError: if the games cannot go on; the state before is saved.
          NonFiniteLossError: see `learner.Learner.update`; the state before is saved.
          WorkdirError: if the episodes' log or the last checkpoint cannot be written.
          ValueError: if the replay's port is in use, a shared replay takes other unrolls, or the
            sweep's server refuses something.
          ServerLostError: if the sweep's server has gone; the state before is saved.
        """
        member = self._member
        copied = member.resume(self._learner, self.env_frames, self.returns) if member else -1
        frames = self.env_frames if self.resumed else None
        for episode in self._episodes.resume(frames, newer_than=copied):
            self.returns.add(episode)
        if member:
            member.start()
        replay = self._open_replay()
        acting = actor.ActorThread(self._make_actor(replay))
        stream = streams.make_stream(
            self._config.replay, replay, self._signature, self._learner.agent
        )
        saving = saver.Saver(
            self._config.run, self._workdir, self._checkpoints, replay, self.counters
        )
        try:
            self._learn(stop, display, replay, acting, stream, saving)
        finally:
            acting.stop()
            self._episodes.flush()
            stream.close()
            saving.save_all()
            replay.stop()
            self._tell_losses(acting.faults())
        if member:
            # Nobody has to wait while the agent is evaluated.
            member.close(finished=self.finished)

    def _tell_losses(self, faults: Mapping[str, float]) -> None:
        """Says what was lost to values that are not finite and to games that failed, if any."""
        if dropped := int(self.counters.non_finite_updates):
            logging.warning(
                "%d of %d updates were dropped, as their loss or gradient was not finite "
                "(learner/non_finite_updates in TensorBoard)", dropped, self._learner_updates,
            )  # fmt: skip
        if counts := [f"{name} {count:.0f}" for name, count in faults.items() if count]:
            logging.warning(
                "faults of the games, each of which cost an episode: %s", ", ".join(counts)
            )

    def _open_replay(self) -> connection.Connection:
        config = self._config
        if self._member and self._member.replay_address:
            queue = replay_config.queue_of(self._member.name)
            replay = connection.Connection(self._member.replay_address, config.replay, queue)
            replay.check(self._signature)
            return replay
        if config.replay.servers:
            name = f"{socket.gethostname()}:{self._workdir}"
            return several_servers.open_connection(config.replay, self._signature, name)
        replay = server.EmbeddedReplay(
            config.replay,
            self._signature,
            self._workdir / "checkpoints/replay",
            config.run.replay_port,
        )
        if self.resumed and config.replay.replay_table and not replay.is_restored:
            logging.warning("no replay checkpoint to resume from: replay fills anew")
        return replay

    def _make_actor(self, replay: connection.Connection) -> actor.Actor:
        config = self._config
        # A resumed run goes on with fresh randomness instead of repeating its first games.
        seeds = np.random.SeedSequence([config.run.seed, self._agent_steps])
        environment_seed, action_seed = (int(seed) >> 2 for seed in seeds.generate_state(2))
        environment = factory.make_environment(
            config.environment, seed=environment_seed, fault_folder=self._workdir
        )
        agent = assembly.build_agent(config, environment, self._dtype, action_seed)
        copier = weights.WeightCopier(self._learner.agent, agent, self.counters.learner_updates)
        return actor.Actor(
            environment,
            actor.ActingPolicy(agent, environment, config.replay.frame_stack),
            assembly.make_recorders(
                config.replay,
                replay,
                self._signature,
                agent,
                task_ids=environment.task_ids,
                member=self._member_index,
                max_unrolls_per_episode=config.max_unrolls_per_episode,
            ),
            refresh_steps=config.replay.unroll_length,
            refresh=copier.refresh,
            on_episode=self._add_episode,
        )

    def _add_episode(self, episode: episode_statistics.Episode) -> None:
        self.returns.add(episode)
        self._episodes.add(self.env_frames, episode)

    def _learn(
        self,
        stop: threading.Event,
        display: progress.ProgressDisplay,
        replay: connection.Connection,
        acting: actor.ActorThread,
        stream: batches.BatchStream,
        saving: saver.Saver,
    ) -> None:
        """The learning loop."""
        has_to_stop = functools.partial(self._has_to_stop, acting, stop)
        watch = actor.StallWatch(acting, _STALL_SECONDS)
        counts = functools.partial(self._counts, acting)
        config = self._config
        with tensorboard.MetricsWriter(self._workdir / "tensorboard") as writer_:
            writer_.hyperparameters(config_values.flatten(dataclasses.asdict(config)))
            reporter = reporting.Reporter(
                display,
                writer_,
                self.returns,
                self._episodes,
                config.run.metrics_seconds,
                metrics_frames=-(-config.run.env_frames // reporting.ROWS),
            )
            while not self.finished:
                if self._member:
                    self._member.keep_pace(self.env_frames, has_to_stop)
                batch = stream.get(watch.beside(has_to_stop))
                if batch is None:
                    break
                watch.fed()
                start = time.monotonic()
                values, priorities = self._learner.update(batch)
                self._learner_updates += 1
                self._agent_steps += int(batch.new_steps)
                values |= experience_age.metrics(batch, self._learner_updates, self._member_index)
                if config.replay.priority_exponent:
                    replay.take_priorities(batch, priorities)
                busy = time.monotonic() - start
                self.learner_seconds += busy
                reporter.add_update(values, busy)
                reporter.report(self.env_frames, replay.fill, counts)
                if self._member and self._member.after_update(self._learner, self.env_frames):
                    saving.make_weights_due()
                saving.save_when_due()
            reporter.report(self.env_frames, replay.fill, counts, last=True)

    def _has_to_stop(self, acting: actor.ActorThread, stop: threading.Event) -> bool:
        acting.check()
        if self._member:
            self._member.check()
        return stop.is_set()

    def _counts(self, acting: actor.ActorThread) -> dict[str, float]:
        """What the actor measures, and the updates that were dropped in all of the run."""
        dropped = float(self.counters.non_finite_updates)
        return acting.metrics() | {"learner/non_finite_updates": dropped}
