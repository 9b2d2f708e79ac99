"""The learner's view of actors in other processes."""

import threading
import time
from collections.abc import Callable
from typing import Any

import ray

from laser_tf import array_function
from laser_tf.cluster import replay_role, role, run_state
from laser_tf.environments import episode_statistics
from laser_tf.host import log_messages
from laser_tf.replay import stored_unroll
from laser_tf.training import learner, run_config

_MAX_PERIOD_SECONDS = 0.5
_SUMMED = ("throughput/", "environment/")  # Prefixes of metrics that are summed over actors.


class RemoteActors:
    """Publishes weights and collects the actors' episodes; see `training.acting.Actors`."""

    def __init__(
        self,
        context: role.RoleContext,
        config: run_config.RunConfig,
        source: learner.Learner,
        signature: stored_unroll.StoredUnroll,
        on_episode: Callable[[episode_statistics.Episode], None],
        is_new: bool,
    ):
        """Waits for replay, then starts the exchange, whose thread calls `on_episode`."""
        replay = replay_role.connect_learner(
            context, config.replay, signature, is_chief=True, is_new=is_new
        )
        self.learner_client = config.replay.make_learner_client(replay, signature, context.workdir)
        self._context = context
        self._on_episode = on_episode
        self._heartbeats: dict[str, run_state.Heartbeat] = {}
        weights_seconds = config.cluster.weights_seconds
        self._publisher = Publisher(source, config.environment.action_repeat, weights_seconds)
        self._period_seconds = min(_MAX_PERIOD_SECONDS, weights_seconds)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._keep_exchanging, name="actors", daemon=True)
        self._thread.start()
        # Until the first update; see `learner_role.TrainingRole`.
        context.status = run_state.Status.WAITING
        context.detail = "waiting for the first batch"

    def _keep_exchanging(self) -> None:
        while not self._closed.wait(self._period_seconds):
            self._exchange()

    def _exchange(self) -> None:
        # Sends weights even if they have not changed: a restarted `RunState` has none.
        if answer := self._context.call("exchange", self._publisher.copy_if_due()):
            episodes, self._heartbeats = answer
            for episode in episodes:
                self._on_episode(episode)

    def _actors(self) -> dict[str, run_state.Heartbeat]:
        return {
            name: heartbeat
            for name, heartbeat in self._heartbeats.items()
            if name.startswith(run_state.ACTOR)
        }

    def check(self) -> None:
        """Does nothing: the driver restarts actors that fail."""

    def metrics(self) -> dict[str, float]:
        """Returns sums over actors, and each role's metrics under its name."""
        values = {"cluster/reporting_actors": float(len(self._actors()))}
        for heartbeat in self._actors().values():
            for name, value in heartbeat.metrics.items():
                if name.startswith(_SUMMED):
                    values[name] = values.get(name, 0.0) + value
        for role_name, heartbeat in self._heartbeats.items():
            for name, value in heartbeat.metrics.items():
                if not name.startswith(_SUMMED):
                    values[f"cluster/{role_name}/{name}"] = value
        return values

    @property
    def env_calls(self) -> int:
        """See `training.acting.Actors`."""
        actors = self._actors().values()
        return int(sum(heartbeat.metrics.get(role.ENV_CALLS, 0.0) for heartbeat in actors))

    @property
    def activity(self) -> str:
        """See `training.acting.Actors`."""
        actors = sorted(self._actors().items())
        states = [f"{name} {actor.detail or actor.status.value}" for name, actor in actors]
        return f"processes are: {'; '.join(states[:4]) or 'none yet'}"

    def stop(self) -> None:
        """Ends the thread, then exchanges once more to collect the remaining episodes."""
        self._closed.set()
        self._thread.join(timeout=10)
        self._exchange()


class Publisher:
    """Copies a learner's weights, which another thread may update, to Ray's object store."""

    def __init__(self, source: learner.Learner, action_repeat: int, period_seconds: float):
        counters, agent = source.counters, source.agent
        self._read = array_function.ArrayFunction(
            lambda: (
                counters.learner_updates.read_value(),
                counters.agent_steps.read_value(),
                [variable.read_value() for variable in agent.acting_variables],
            )
        )
        self._action_repeat = action_repeat
        self._period_seconds = period_seconds
        self._next_copy = 0.0  # On the monotonic clock.
        self._kept: list[Any] = []  # Two newest copies, the newest last; Ray frees older ones.
        self._newest: run_state.PublishedWeights | None = None
        self._notice = log_messages.FailureNotice(on_recovery="Weights can be published again.")

    def copy_if_due(self) -> run_state.PublishedWeights | None:
        """Copies the weights once per period; returns the newest copy."""
        if time.monotonic() < self._next_copy:
            return self._newest
        self._next_copy = time.monotonic() + self._period_seconds
        # Variables may differ by an update, which is harmless; see `named_variables.weight_copier`.
        updates, agent_steps, values = self._read()
        # While the learner waits for experience, its weights do not change.
        if self._newest and int(updates) == self._newest.learner_updates:
            return self._newest
        env_frames = int(agent_steps) * self._action_repeat
        try:
            reference = ray.put(values)
        except ray.exceptions.RayError as error:  # The object store and its disk are full.
            self._notice.failed(
                f"Cannot publish weights ({type(error).__name__}). Actors use older weights until "
                "the next attempt succeeds."
            )
            return self._newest
        self._notice.succeeded()
        # Actors may still fetch the previous weights.
        self._kept = [*self._kept[-1:], reference]
        self._newest = run_state.PublishedWeights(int(updates), env_frames, [reference])
        return self._newest
