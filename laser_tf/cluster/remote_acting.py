"""Acting in other processes, as the learner sees it."""

import threading
from collections.abc import Callable, Mapping

from laser_tf.cluster import hub, replay_access, role_process, weights
from laser_tf.environments import episode_statistics, faults
from laser_tf.replay import contextual_replay, stored_unroll
from laser_tf.training import learner, run_config

_POLL_SECONDS = 0.5


class RemoteActing:
    """See `training.acting.Acting`: hands out weights, and hears of actors by way of the hub."""

    def __init__(
        self,
        context: role_process.Context,
        config: run_config.RunConfig,
        trained: learner.Learner,
        signature: stored_unroll.StoredUnroll,
        on_episode: Callable[[episode_statistics.Episode], None],
        is_new: bool,
    ):
        """Waits for replay, then hands out weights.

        Args:
          context: of the learner's role.
          config: of the run.
          trained: the learner.
          signature: of an unroll.
          on_episode: called with each finished episode, in another thread.
          is_new: whether the run has no experience of its own yet.

        Raises:
          StoppedError: if the role is to stop before replay is there.
          ValueError: if replay takes other unrolls or serves another run.
        """
        replay = replay_access.for_learner(
            context, config.replay, signature, is_chief=True, is_new=is_new
        )
        self.replay = contextual_replay.for_learner(
            replay, config.replay, signature, context.workdir
        )
        self._context = context
        self._on_episode = on_episode
        self._healths: dict[str, hub.Health] = {}
        self._publisher = weights.Publisher(
            context,
            trained,
            lambda: int(trained.counters.agent_steps.numpy()) * config.environment.action_repeat,
            config.cluster.weights_seconds,
        )
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="actors", daemon=True)
        self._thread.start()
        context.state = role_process.LEARNS

    def _listen(self) -> None:
        while not self._closed.is_set():
            self._hear()
            self._closed.wait(_POLL_SECONDS)

    def _hear(self) -> None:
        for episode in self._context.ask("take_episodes") or ():
            self._on_episode(episode)
        self._healths = self._context.ask("healths") or self._healths

    def _actors(self) -> dict[str, hub.Health]:
        return {name: said for name, said in self._healths.items() if name.startswith(hub.ACTOR)}

    def check(self) -> None:
        """Nothing that happens to an actor ends the learner: the driver starts it again."""

    def metrics(self) -> dict[str, float]:
        """Sums over actors, and each other role's metrics under its name."""
        values = {"cluster/actors_heard_of": float(len(self._actors()))}
        for said in self._actors().values():
            for name, value in said.metrics.items():
                if name.startswith(("throughput/", "environment/")):
                    values[name] = values.get(name, 0.0) + value
        for role, said in self._healths.items():
            for name, value in said.metrics.items():
                if not name.startswith(("throughput/", "environment/")):
                    values[f"cluster/{role}/{name}"] = value
        return values

    def faults(self) -> Mapping[str, float]:
        """Sums over actors, of those that are alive."""
        names = [f"environment/{kind}" for kind in faults.KINDS]
        actors = self._actors().values()
        return {name: sum(said.metrics.get(name, 0.0) for said in actors) for name in names}

    @property
    def time_steps(self) -> int:
        """See `training.acting.Acting`."""
        return sum(
            int(said.metrics.get(role_process.TIME_STEPS, 0)) for said in self._actors().values()
        )

    @property
    def state(self) -> str:
        """What is known of the actors, in words that follow "the actor"."""
        states = [f"{name} {said.state}" for name, said in sorted(self._actors().items())]
        return f"processes are: {'; '.join(states[:4]) or 'none yet'}"

    def stop(self) -> None:
        """Hears of the last episodes, and hands out no more weights."""
        self._closed.set()
        self._thread.join(timeout=10)
        self._hear()
        self._publisher.close()
