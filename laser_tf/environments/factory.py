"""Makes any environment from its configuration."""

import dataclasses
import difflib

from laser_tf.environments import base

SUITES = ("atari", "minatar", "catch")
_LARGEST_SEED = 2**31 - 1  # ALE's


@dataclasses.dataclass(frozen=True)
class EnvironmentConfig:
    """Which games are played, and how.

    Raises:
      ValueError: for a value out of range or an unknown name; the message names the remedy.
    """

    suite: str = "atari"  # one of SUITES
    task: str = "pong"  # a game of the suite
    num_envs: int = 32  # games played at once
    num_threads: int = 0  # of the Atari emulators; 0: one for each core
    action_repeat: int = 4  # env frames an agent step; 1 for minatar and catch
    no_op_max: int = 30  # Atari: most no-op frames at an episode's start
    max_frames_per_episode: int = 108_000  # env frames, then the episode is cut
    sticky_actions: float = (
        0.0  # probability of playing the last action again; MinAtar's paper: 0.1
    )
    full_action_space: bool = False  # Atari: all 18 actions for every game
    life_loss_is_end: bool = True  # Atari: the discount is 0 where a life is lost

    def __post_init__(self):
        _check_name("suite", self.suite, SUITES)
        _check_task(self.suite, self.task)
        for name in ("num_envs", "action_repeat", "max_frames_per_episode"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: use 1 or more")
        for name in ("num_threads", "no_op_max"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}: use 0 or more")
        if not 0 <= self.sticky_actions < 1:
            raise ValueError(
                f"sticky_actions is {self.sticky_actions}: use a probability from 0 to below 1"
            )
        if self.suite != "atari" and self.action_repeat != 1:
            raise ValueError(f"action_repeat is {self.action_repeat}: {self.suite} has none, use 1")
        if self.suite == "catch" and self.sticky_actions:
            raise ValueError(f"sticky_actions is {self.sticky_actions}: catch has none, use 0")


def _check_name(what: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        close = difflib.get_close_matches(name, known, n=3) or known
        raise ValueError(f"there is no {what} {name!r}: did you mean {' or '.join(close)}?")


def _check_task(suite: str, task: str) -> None:
    # Each suite is imported only where it is used: a user of catch need not load an emulator.
    if suite == "catch":
        _check_name("task of catch", task, ("catch",))
    elif suite == "minatar":
        from laser_tf.environments import minatar

        minatar.check_task(task)
    else:
        from laser_tf.environments import atari

        atari.check_task(task)


def make_environment(
    config: EnvironmentConfig, *, seed: int, num_envs: int | None = None, rendering: bool = False
) -> base.BatchedEnvironment:
    """Makes a batch of games.

    Args:
      config: which.
      seed: game i is seeded with `seed + i`, up to 2**31 - 1.
      num_envs: N, by default the configuration's.
      rendering: whether `render` will be called. Atari then runs every game twice, in colour too.

    Raises:
      ValueError: for a seed out of range or `num_envs` below 1.
    """
    if num_envs is None:
        num_envs = config.num_envs
    if num_envs < 1:
        raise ValueError(f"num_envs is {num_envs}: use 1 or more")
    if not 0 <= seed <= _LARGEST_SEED + 1 - num_envs:  # ALE plays at random with a negative one
        raise ValueError(f"seed is {seed}: use 0 to {_LARGEST_SEED + 1 - num_envs}")
    if config.suite == "catch":
        from laser_tf.environments import catch

        return catch.Catch(num_envs, seed)
    if config.suite == "minatar":
        from laser_tf.environments import minatar

        return minatar.MinAtar(
            config.task,
            num_envs,
            seed,
            sticky_actions=config.sticky_actions,
            max_frames_per_episode=config.max_frames_per_episode,
        )
    from laser_tf.environments import atari

    return atari.Atari(
        config.task,
        num_envs,
        seed,
        num_threads=config.num_threads,
        action_repeat=config.action_repeat,
        no_op_max=config.no_op_max,
        max_frames_per_episode=config.max_frames_per_episode,
        sticky_actions=config.sticky_actions,
        full_action_space=config.full_action_space,
        life_loss_is_end=config.life_loss_is_end,
        rendering=rendering,
    )
