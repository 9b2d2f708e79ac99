"""Whether all roles have found a machine with room."""

import logging
import time
from collections.abc import Iterable, Sequence

from laser_tf.cluster import supervision

_TOLD_MINUTES = 2.0  # that placing and starting a process may take
_LEAST_MINUTES = 5.0  # before a run is given up: a machine may only be slow


class Placement:
    """Tells who waits for a machine of a cluster, and ends a run that cannot begin."""

    def __init__(self, wait_minutes: float):
        """Begins to wait.

        Args:
          wait_minutes: for machines that will join.
        """
        self._began = time.monotonic()
        self._minutes = max(_LEAST_MINUTES, wait_minutes)
        self._heard: set[str] = set()  # a hub that was restarted knows nobody at first
        self._is_told = False

    def check(
        self,
        roles: Sequence[supervision.Supervised],
        heard: Iterable[str],
        one_of: Sequence[supervision.Supervised],
    ) -> None:
        """Tells, once, who waits for a machine with room.

        Args:
          roles: all.
          heard: names of those that have said how they are.
          one_of: of which one at least is needed, beside all that are vital.

        Raises:
          RoleFailedError: if a role that is needed has waited for too long.
        """
        self._heard.update(heard)
        missing = [role for role in roles if role.name not in self._heard]
        minutes = (time.monotonic() - self._began) / 60
        if not missing or minutes < _TOLD_MINUTES:
            return
        names = ", ".join(role.name for role in missing[:4]) + " and others" * (len(missing) > 4)
        is_needed = any(role.is_vital for role in missing) or all(r in missing for r in one_of)
        if is_needed and minutes > self._minutes:
            raise supervision.RoleFailedError(
                f"after {minutes:.0f} minutes no machine of the cluster has room for {names}: add "
                "machines, lower cluster.learner_gpus, cluster.learner_cpus or cluster.actor_cpus, "
                "or raise cluster.wait_minutes"
            )
        if not self._is_told:
            logging.info("%s wait for a machine with room", names)
            self._is_told = True
