"""The learner's view of actors in other processes."""

import threading
from collections.abc import Callable, Mapping

from laser_tf.cluster import replay_role, role, run_state, weights
from laser_tf.environments import episode_statistics, faults
from laser_tf.replay import stored_unroll
from laser_tf.training import learner, run_config

_POLL_PERIOD_SECONDS = 0.5
_SUMMED = ("throughput/", "environment/")  # Prefixes of metrics that are summed over actors.


class RemoteActing:
    """Publishes weights and collects the actors' episodes; see `training.acting.Acting`."""

    def __init__(
        self,
        context: role.Context,
        config: run_config.RunConfig,
        trained: learner.Learner,
        signature: stored_unroll.StoredUnroll,
        on_episode: Callable[[episode_statistics.Episode], None],
        is_new: bool,
    ):
        """Waits for replay, then publishes weights.

        Args:
          context: The learner's connection to the run.
          config: Configuration of the run.
          trained: The learner.
          signature: Signature of an unroll.
          on_episode: Called with each finished episode, in another thread.
          is_new: Whether the run has no experience yet.

        Raises:
          StoppedError: If the role is told to stop before replay answers.
          ValueError: If replay holds other unrolls or serves another run.
        """
        replay = replay_role.connect_learner(
            context, config.replay, signature, is_chief=True, is_new=is_new
        )
        self.replay = config.replay.learner_replay(replay, signature, context.workdir)
        self._context = context
        self._on_episode = on_episode
        self._heartbeats: dict[str, run_state.Heartbeat] = {}
        self._publisher = weights.Publisher(
            context,
            trained,
            lambda: int(trained.counters.agent_steps.numpy()) * config.environment.action_repeat,
            config.cluster.weights_seconds,
        )
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="actors", daemon=True)
        self._thread.start()
        context.status = run_state.Status.RUNNING

    def _listen(self) -> None:
        while not self._closed.is_set():
            self._update()
            self._closed.wait(_POLL_PERIOD_SECONDS)

    def _update(self) -> None:
        for episode in self._context.call("take_episodes") or ():
            self._on_episode(episode)
        self._heartbeats = self._context.call("heartbeats") or self._heartbeats

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
        values = {"cluster/actors_heard_of": float(len(self._actors()))}
        for heartbeat in self._actors().values():
            for name, value in heartbeat.metrics.items():
                if name.startswith(_SUMMED):
                    values[name] = values.get(name, 0.0) + value
        for role_name, heartbeat in self._heartbeats.items():
            for name, value in heartbeat.metrics.items():
                if not name.startswith(_SUMMED):
                    values[f"cluster/{role_name}/{name}"] = value
        return values

    def faults(self) -> Mapping[str, float]:
        """Returns counts of environment faults, summed over the running actors."""
        names = [f"environment/{kind}" for kind in faults.KINDS]
        return {name: sum(self._values(name)) for name in names}

    def _values(self, metric: str) -> list[float]:
        return [heartbeat.metrics.get(metric, 0.0) for heartbeat in self._actors().values()]

    @property
    def time_steps(self) -> int:
        """See `training.acting.Acting`."""
        return int(sum(self._values(role.TIME_STEPS)))

    @property
    def state(self) -> str:
        """See `training.acting.Acting`."""
        states = [
            f"{name} {heartbeat.detail or heartbeat.status.value}"
            for name, heartbeat in sorted(self._actors().items())
        ]
        return f"processes are: {'; '.join(states[:4]) or 'none yet'}"

    def stop(self) -> None:
        """Collects the last episodes and publishes no more weights."""
        self._closed.set()
        self._thread.join(timeout=10)
        self._update()
        self._publisher.close()
