"""Which games are played, and how."""

import dataclasses

from laser_tf import config_checks
from laser_tf.environments import atari_games, names

SUITES = ("atari", "minatar", "catch", "tmaze", "vizdoom", "minigrid", "dmlab")
_REPEATING_SUITES = ("atari", "vizdoom", "dmlab")
_STICKY_SUITES = ("atari", "minatar")


@dataclasses.dataclass(frozen=True)
class EnvironmentConfig:
    """The environments of a run: which games are played, and how.

    Raises:
      ImportError: for minigrid where the package that knows its tasks is not installed.
      ValueError: for a value out of range or an unknown name; the message names the remedy.
    """

    suite: str = "atari"  # atari, minatar, catch, tmaze, vizdoom, minigrid or dmlab
    task: str = "pong"  # a game of the suite, several with commas between them, or "all" of it
    num_envs: int = 32  # games; of each task, played at once
    num_threads: int = 0  # threads; of the Atari and ViZDoom emulators; 0: one for each core
    action_repeat: int = 4  # env frames; an agent step; 1 outside atari, vizdoom and dmlab
    max_frames_per_episode: int = 108_000  # env frames; then the episode is cut
    reward_scales: tuple[float, ...] = ()  # factors; of each task's rewards; (): all 1
    no_op_max: int = 30  # env frames; Atari: most no-ops at an episode's start
    full_action_space: bool = False  # Atari: all 18 actions for every game
    life_loss_is_end: bool = True  # Atari: the discount is 0 where a life is lost
    sticky_actions: float = 0.0  # probability; Atari, MinAtar: of playing the last action again
    corridor_length: int = 10  # cells; tmaze: between the cue and the junction
    instruction_length: int = 16  # words; minigrid, DMLab: of the longest text; DMLab: 0 reads none
    hold_out: bool = False  # DMLab: play what is held out for testing
    level_cache: str = ""  # DMLab: folder for compiled maps; "": none are kept
    dataset_path: str = ""  # DMLab: folder of the images that two of psychlab's levels show

    def __post_init__(self):
        config_checks.check_types(self)
        names.check("suite", self.suite, SUITES)
        try:
            for task in self.tasks:
                _check_task(self.suite, task)
        except ValueError as error:
            raise ValueError(f"task is {self.task!r}: {error}") from None
        if len(set(self.tasks)) < len(self.tasks):
            raise ValueError(f"task is {self.task!r}: name each task once")
        self._check_numbers()
        if self.reward_scales and len(self.reward_scales) != len(self.tasks):
            raise ValueError(
                f"reward_scales are {self.reward_scales}: give one number for each of "
                f"{', '.join(self.tasks)}"
            )
        if not all(scale > 0 for scale in self.reward_scales):
            raise ValueError(f"reward_scales are {self.reward_scales}: use values above 0")
        if self.suite not in _REPEATING_SUITES and self.action_repeat != 1:
            raise ValueError(f"action_repeat is {self.action_repeat}: {self.suite} has none, use 1")
        if self.suite not in _STICKY_SUITES and self.sticky_actions:
            raise ValueError(
                f"sticky_actions is {self.sticky_actions}: {self.suite} has none, use 0"
            )
        if self.suite != "dmlab" and self.hold_out:
            raise ValueError(f"hold_out is True: {self.suite} holds nothing out, use False")

    def _check_numbers(self) -> None:
        for name, least, most, reason in (
            ("num_envs", 1, 100_000, "no process plays more games"),
            ("num_threads", 0, 1_024, "more threads play no faster"),
            ("action_repeat", 1, 1_000, "nobody can act so rarely"),
            ("max_frames_per_episode", 1, 2**31 - 1, "emulators count in 32 bits"),
            ("corridor_length", 1, 1_000_000, "a picture of a longer one fits no memory"),
            ("instruction_length", 0 if self.suite == "dmlab" else 1, 10_000, "no task shows more"),
            ("no_op_max", 0, 10_000, "emulators count in 32 bits, and games end by then"),
        ):
            config_checks.check_range(self, name, least, most, reason)
        if not 0 <= self.sticky_actions < 1:
            raise ValueError(
                f"sticky_actions is {self.sticky_actions}: use a probability from 0 to below 1"
            )

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names in `task`."""
        if self.task == "all":
            return _all_tasks(self.suite)
        return tuple(name.strip() for name in self.task.split(","))

    @property
    def max_steps_per_episode(self) -> int:
        """Agent steps of the longest episode."""
        match self.suite:
            case "tmaze":
                from laser_tf.environments import tmaze

                return tmaze.time_limit(self.corridor_length)
            case "catch":
                from laser_tf.environments import catch

                return catch.STEPS
            case _:
                return -(-self.max_frames_per_episode // self.action_repeat)


def _all_tasks(suite: str) -> tuple[str, ...]:
    match suite:
        case "minatar":
            from laser_tf.environments import minatar

            return minatar.GAMES
        case "dmlab":
            from laser_tf.environments import dmlab

            return dmlab.LEVELS
        case _:
            raise ValueError(f"the tasks of {suite} differ too much, name them")


def _check_task(suite: str, task: str) -> None:
    # Each suite is imported only where it is used, and none of these files loads an emulator.
    match suite:
        case "atari":
            atari_games.check_task(task)
        case "minatar":
            from laser_tf.environments import minatar

            minatar.check_task(task)
        case "vizdoom":
            from laser_tf.environments import vizdoom

            vizdoom.check_task(task)
        case "minigrid":
            from laser_tf.environments import minigrid

            minigrid.check_task(task)
        case "dmlab":
            from laser_tf.environments import dmlab

            dmlab.check_task(task)
        case _:
            names.check(f"task of {suite}", task, (suite,))
