"""Equal speed: no member of a sweep runs far ahead of the others (LASER, section 5.1)."""

from collections.abc import Callable, Sequence

SILENCE_SECONDS = 20.0  # Time without a report after which no member waits.
START_SECONDS = 180.0  # Time for the process of a member to start.


class SpeedLimiter:
    """Computes up to how many env frames each member may learn.

    Distances count from the point at which a member has joined the others. A member that joins
    late, or again after a crash, runs at the speed of the others from its own point on. The others
    do not wait for a member that restarts, nor for a member that does not report.
    """

    def __init__(
        self,
        members: Sequence[str],
        max_lead_frames: int,
        clock: Callable[[], float],
    ):
        """Expects all members; `max_lead_frames` limits the lead over the slowest."""
        self._max_lead_frames = max_lead_frames
        self._clock = clock
        self._deadline = {member: clock() + START_SECONDS for member in members}  # Of a report.
        self._frames = dict.fromkeys(members, 0)
        self._starts: dict[str, int] = {}  # Env frames from which distances count.
        self._starting = set(members)  # Members whose process has not reported.
        self._late: set[str] = set()  # Members that started after the others stopped waiting.

    def expect(self, member: str) -> None:
        """Records the start of a member's process; the others wait for it unless it is late."""
        if member in self._starts or not self._is_running(member):
            self._late.add(member)
        self._starting.add(member)
        self._deadline[member] = self._clock() + START_SECONDS

    def report(self, member: str, env_frames: int) -> None:
        """Records the progress of a member."""
        if member in self._starting:
            others = [self._distance(other) for other in self._awaited() if other != member]
            is_late = member in self._late or not self._is_running(member)
            lead = min(others, default=0) if is_late else 0
            self._starts[member] = env_frames - lead
            self._starting.discard(member)
            self._late.discard(member)
        self._frames[member] = env_frames
        self._deadline[member] = self._clock() + SILENCE_SECONDS

    def leave(self, member: str) -> None:
        """Stops waiting for a member that has finished."""
        self._deadline[member] = self._clock()

    def limit(self, member: str) -> int:
        """Returns the env frames up to which a member may learn now."""
        slowest = min(map(self._distance, {member, *self._awaited()}))
        return self._starts.get(member, 0) + slowest + self._max_lead_frames

    def _is_running(self, member: str) -> bool:
        return self._clock() < self._deadline[member]

    def _awaited(self) -> list[str]:
        return [m for m in self._deadline if self._is_running(m) and m not in self._late]

    def _distance(self, member: str) -> int:
        return self._frames[member] - self._starts.get(member, 0)
