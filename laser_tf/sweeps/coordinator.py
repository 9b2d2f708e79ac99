"""Where the agents of a sweep meet: names, equal speed, and the population's decisions."""

import dataclasses
import logging
import math
import pathlib
import threading
from collections.abc import Callable, Mapping
from typing import Any

from laser_tf.host import run_folder, whole_files
from laser_tf.sweeps import call_values, lineage, pace, population, rpc, sweep_config


@dataclasses.dataclass
class _Member:
    """What is known of an agent."""

    session: str = ""  # of the process that bears its name; "" while there is none
    has_reported: bool = False  # in this session
    report: dict[str, Any] = dataclasses.field(default_factory=dict)


class Coordinator:
    """Answers the agents' calls, from any thread."""

    def __init__(
        self,
        config: sweep_config.SweepConfig,
        folder: pathlib.Path,
        replay_port: int | None,
        sweep_id: str,
    ):
        """Expects all agents of a sweep.

        Args:
          config: of the sweep.
          folder: of the sweep; the population's lineage is kept there, and who is finished.
          replay_port: of the shared Reverb server; None where each agent has its own replay.
          sweep_id: of the sweep; whoever asks for another one is refused.
        """
        self._config = config
        self._folder = folder
        self._replay_port = replay_port
        self._sweep_id = sweep_id
        self._lock = threading.Lock()
        self._members = {name: _Member() for name in config.agents}
        self._pace = pace.Pace(list(config.agents), config.sweep.max_lead_env_frames)
        self._population = None
        if config.population.method != "none":
            self._population = population.Population(
                config.population,
                lineage.Lineage(folder / lineage.FILE, config.population.tuned),
            )
        self.methods = {
            name: self._locked(method)
            for name, method in (
                ("join", self._join),
                ("report", self._report),
                ("resume", self._resume),
                ("decide", self._decide),
                ("leave", self._leave),
                ("status", self._status),
            )
        }

    def _locked(
        self, method: Callable[[rpc.Message], rpc.Message]
    ) -> Callable[[rpc.Message], rpc.Message]:
        def answer(message: rpc.Message) -> rpc.Message:
            # Agents elsewhere may not know which sweep it is that they join.
            if message.values.get("sweep_id", self._sweep_id) != self._sweep_id:
                raise ValueError("another sweep's server has this port: use another --port")
            with self._lock:
                return method(message)

        return answer

    def _member(self, message: rpc.Message) -> tuple[str, _Member]:
        name = call_values.text(message.values, "name")
        if name not in self._members:
            raise ValueError(
                f"the sweep has no agent {name!r}: use one of {', '.join(self._members)}"
            )
        return name, self._members[name]

    def _join(self, message: rpc.Message) -> rpc.Message:
        """Gives a process the name that it asks for, with all that it needs to be that agent."""
        name, member = self._member(message)
        if member.session and self._pace.is_running(name):
            raise ValueError(
                f"{name} is running already: two agents cannot have one name. Use another --name, "
                f"or, if it was killed, try again in {pace.SILENCE_SECONDS:.0f} seconds"
            )
        member.session = call_values.text(message.values, "session")
        member.has_reported = False
        self._pace.expect(name)
        return rpc.Message(
            {
                "index": list(self._members).index(name),
                "config": dataclasses.asdict(self._config.agents[name]),
                "replay_port": self._replay_port,
                "sweep_id": self._sweep_id,
            }
        )

    def _report(self, message: rpc.Message) -> rpc.Message:
        """Takes how far an agent is and says how far it may go."""
        name, member = self._member(message)
        self._check_session(name, member, message)
        env_frames = call_values.whole(message.values, "env_frames")
        member.report = {"env_frames": env_frames} | {
            key: call_values.number(message.values, key) for key in ("mean_return", "fitness")
        }
        if member.has_reported:
            self._pace.report(name, env_frames)
        else:
            self._pace.join(name, env_frames)
            member.has_reported = True
        limit = self._pace.limit(name) if self._config.sweep.equal_speed else None
        return rpc.Message({"limit": limit})

    def _check_session(self, name: str, member: _Member, message: rpc.Message) -> None:
        if call_values.text(message.values, "session") != member.session:
            raise ValueError(f"another process is {name} now")

    def _resume(self, message: rpc.Message) -> rpc.Message:
        """What an agent that goes on from some env frames may have missed of its decisions.

        An answer was lost, or what it changed was not saved. What is told stays the same until the
        agent has saved itself beyond the decision.
        """
        name, member = self._member(message)
        self._check_session(name, member, message)
        if not self._population:
            return rpc.Message({"next_ready": None, "copied": -1, "hyperparameters": {}})
        env_frames = call_values.whole(message.values, "env_frames")
        latest, copy = self._population.latest(name), self._population.latest_copy(name)
        has_missed_values = latest is not None and env_frames <= latest.env_frames
        has_missed_weights = copy is not None and env_frames <= copy.env_frames
        return rpc.Message(
            {
                "next_ready": self._population.next_ready(name),
                "copied": copy.env_frames if copy else -1,
                "hyperparameters": latest.hyperparameters if has_missed_values else {},
            },
            self._read_weights(name) if has_missed_weights else b"",
        )

    def _read_weights(self, name: str) -> bytes:
        try:
            return self._weights(name).read_bytes()
        except OSError as error:
            raise ValueError(
                f"cannot read {self._weights(name)}, from which {name} goes on: {error.strerror}; "
                "restore the file from a backup, or start again with another --workdir"
            ) from None

    def _decide(self, message: rpc.Message) -> rpc.Message:
        """What an agent of a population does next: goes on, or becomes a copy of a better one."""
        name, member = self._member(message)
        self._check_session(name, member, message)
        if not self._population:
            raise ValueError("the sweep has no population: nothing is to be decided")
        env_frames = call_values.whole(message.values, "env_frames")
        others = {other: _fitness(m.report) for other, m in self._members.items() if other != name}
        decided = self._population.decide(
            name, env_frames, _fitness(message.values), self._tuned(message), others
        )
        try:
            copied = self._weights(decided.parent).read_bytes() if decided.parent else b""
            # What the agent goes on with, like the record's hyper-parameters: who copies it gets
            # weights and values that belong together.
            self._keep_weights(name, copied or message.blob)
            self._population.record(decided)
        except OSError as error:
            logging.warning("no decision about %s now: %s", name, error)
            # It goes on as it is and asks again, long before it would be due otherwise.
            again = env_frames + max(1, self._config.population.ready_env_frames // 10)
            return rpc.Message({"parent": None, "hyperparameters": {}, "next_ready": again})
        answer = {
            "parent": decided.parent,
            "hyperparameters": decided.hyperparameters,
            "next_ready": self._population.next_ready(name),
        }
        return rpc.Message(answer, copied)

    def _tuned(self, message: rpc.Message) -> dict[str, float]:
        values = call_values.numbers(message.values, "hyperparameters")
        for key in self._config.population.tuned:
            if key not in values:
                raise ValueError(f"hyperparameters have no {key!r}, which the population tunes")
        return values

    def _keep_weights(self, name: str, weights: bytes) -> None:
        """On disk, since a server that comes back must still have what it may give to others."""
        path = self._weights(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        whole_files.write(path, weights)

    def _weights(self, name: str) -> pathlib.Path:
        return self._folder / "population" / f"{name}.npz"

    def _leave(self, message: rpc.Message) -> rpc.Message:
        """Frees the name of a process that has ended, and notes whether the agent is finished."""
        name, member = self._member(message)
        is_finished = False
        if "session" in message.values:  # the supervisor of a process does not know it
            self._check_session(name, member, message)
            is_finished = call_values.flag(message.values, "finished")
        if is_finished:
            self._finished(name).parent.mkdir(exist_ok=True)
            self._finished(name).touch()
        member.session = ""
        self._pace.leave(name)
        return rpc.Message({})

    def _finished(self, name: str) -> pathlib.Path:
        """The file that says of an agent that it has spent its budget."""
        return self._folder / run_folder.FINISHED_AGENTS / name

    def _status(self, _: rpc.Message) -> rpc.Message:
        """What the sweep's display shows."""
        status = {}
        for name, member in self._members.items():
            finished = self._finished(name).exists()
            # Of an agent that was finished before this server started nothing was reported.
            done = {"env_frames": self._config.agents[name].run.env_frames} if finished else {}
            states = {"running": bool(member.session), "finished": finished}
            status[name] = member.report | done | states
        return rpc.Message(status)


def _fitness(values: Mapping[str, Any]) -> float:
    """As an agent gives it; NaN where it is not known."""
    fitness = call_values.number(values, "fitness")
    return math.nan if fitness is None else fitness
