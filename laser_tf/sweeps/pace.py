"""Equal speed: no agent of a sweep runs far ahead of the others (LASER, section 5.1)."""

import time
from collections.abc import Callable, Sequence

SILENCE_SECONDS = 20.0  # after which an agent counts as dead
START_SECONDS = 180.0  # within which an agent must have come


class Pace:
    """How far each agent may go now, in env frames.

    Compared is how far they have come since they started beside each other: who is dead holds
    nobody up, and who comes when the others have gone on without it, late or back from a crash,
    runs at their speed from where it is and ends as much later. Nobody waits while it starts.
    """

    def __init__(
        self,
        agents: Sequence[str],
        max_lead: int,
        clock: Callable[[], float] = time.monotonic,
    ):
        """Expects all agents to come.

        Args:
          agents: their names.
          max_lead: env frames that an agent may be ahead of the slowest.
          clock: returns seconds.
        """
        self._max_lead = max_lead
        self._clock = clock
        self._deadline = {agent: clock() + START_SECONDS for agent in agents}  # to be heard of
        self._frames = dict.fromkeys(agents, 0)
        self._starts: dict[str, int] = {}  # env frames at which the distances are counted from
        self._late: set[str] = set()  # who has started when nobody waited for it any more

    def expect(self, agent: str) -> None:
        """Takes that an agent's process has started; waits a while for it, unless it is late."""
        if agent in self._starts or not self.is_running(agent):
            self._late.add(agent)
        self._deadline[agent] = self._clock() + START_SECONDS

    def join(self, agent: str, env_frames: int) -> None:
        """Takes an agent that begins, or goes on, to learn at some env frames."""
        others = [self._distance(other) for other in self._waited_for() if other != agent]
        self._starts[agent] = env_frames - (min(others, default=0) if agent in self._late else 0)
        self._late.discard(agent)
        self.report(agent, env_frames)

    def report(self, agent: str, env_frames: int) -> None:
        """Takes how far an agent is."""
        self._frames[agent] = env_frames
        self._deadline[agent] = self._clock() + SILENCE_SECONDS

    def leave(self, agent: str) -> None:
        """Stops waiting for an agent that has died or finished."""
        self._deadline[agent] = self._clock()

    def is_running(self, agent: str) -> bool:
        """Whether an agent is expected to go on: it is alive, or still to come."""
        return self._clock() < self._deadline[agent]

    def limit(self, agent: str) -> int:
        """Env frames up to which an agent may learn now."""
        slowest = min(map(self._distance, {agent, *self._waited_for()}))
        return self._starts.get(agent, 0) + slowest + self._max_lead

    def _waited_for(self) -> list[str]:
        return [a for a in self._deadline if self.is_running(a) and a not in self._late]

    def _distance(self, agent: str) -> int:
        return self._frames[agent] - self._starts.get(agent, 0)
