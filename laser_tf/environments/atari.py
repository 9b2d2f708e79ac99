"""Atari games by ALE's own vector environment."""

import dataclasses
import functools
from typing import Any, ClassVar

import numpy as np
from dm_env import specs

from laser_tf import config_checks, observations
from laser_tf.environments import base, environment_config, suites

HEIGHT, WIDTH = 84, 84
SCREEN_HEIGHT, SCREEN_WIDTH = 210, 160
_NO_LIMIT = 2**31 - 1  # env frames
_IDS = r"(?:ALE/)?(\w+?)(?:NoFrameskip|Deterministic)?-v\d+"  # of gymnasium

# The games of ale-py without combat, joust, maze_craze and warlords. They need two players, so ALE
# ends the process when it loads them.
# fmt: off
GAMES = (
    "adventure", "air_raid", "alien", "amidar", "assault", "asterix", "asteroids", "atlantis",
    "atlantis2", "backgammon", "bank_heist", "basic_math", "battle_zone", "beam_rider", "berzerk",
    "blackjack", "bowling", "boxing", "breakout", "carnival", "casino", "centipede",
    "chopper_command", "crazy_climber", "crossbow", "darkchambers", "defender", "demon_attack",
    "donkey_kong", "double_dunk", "earthworld", "elevator_action", "enduro", "entombed", "et",
    "fishing_derby", "flag_capture", "freeway", "frogger", "frostbite", "galaxian", "gopher",
    "gravitar", "hangman", "haunted_house", "hero", "human_cannonball", "ice_hockey", "jamesbond",
    "journey_escape", "kaboom", "kangaroo", "keystone_kapers", "king_kong", "klax", "koolaid",
    "krull", "kung_fu_master", "laser_gates", "lost_luggage", "mario_bros", "miniature_golf",
    "montezuma_revenge", "mr_do", "ms_pacman", "name_this_game", "othello", "pacman", "phoenix",
    "pitfall", "pitfall2", "pong", "pooyan", "private_eye", "qbert", "riverraid", "road_runner",
    "robotank", "seaquest", "sir_lancelot", "skiing", "solaris", "space_invaders", "space_war",
    "star_gunner", "superman", "surround", "tennis", "tetris", "tic_tac_toe_3d", "time_pilot",
    "trondead", "turmoil", "tutankham", "up_n_down", "venture", "video_checkers", "video_chess",
    "video_cube", "video_pinball", "wizard_of_wor", "word_zapper", "yars_revenge", "zaxxon",
)
# fmt: on

IMPALA, DOPAMINE, REVISITING = "impala", "dopamine", "revisiting"
# The papers' evaluation protocols: values of `AtariConfig` by the name of the protocol.
PROTOCOLS: dict[str, dict[str, Any]] = {
    IMPALA: {  # Espeholt et al. 2018; the frames are LASER's, appendix D
        "sticky_actions": 0.0,
        "life_loss_is_end": True,
        "no_op_max": 30,  # env frames
        "full_action_space": False,
        "max_frames_per_episode": 108_000,  # env frames, 30 minutes
    },
    DOPAMINE: {  # Castro et al. 2018
        "sticky_actions": 0.25,
        "life_loss_is_end": False,
        "no_op_max": 0,
        "full_action_space": False,
        "max_frames_per_episode": 108_000,  # env frames: 27,000 agent steps of 4
    },
    REVISITING: {  # Machado et al. 2018
        "sticky_actions": 0.25,
        "life_loss_is_end": False,
        "no_op_max": 0,
        "full_action_space": True,
        "max_frames_per_episode": 18_000,  # env frames, 5 minutes
    },
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class AtariConfig(environment_config.EnvironmentConfig):
    """Configuration of Atari games, by default those of IMPALA and LASER, see `PROTOCOLS`."""

    suite: str = "atari"
    task: str = "pong"
    max_frames_per_episode: int = 108_000  # env frames; limit that truncates an episode
    num_threads: int = 0  # threads; of the emulators; 0: one for each core
    action_repeat: int = 4  # env frames; per agent step
    no_op_max: int = 30  # env frames; max no-ops at the start of an episode, min 1; 0: none
    full_action_space: bool = False  # all 18 actions for every game
    life_loss_is_end: bool = True  # a lost life has discount 0
    sticky_actions: float = 0.0  # probability; of repeating the last action

    frames_per_second: ClassVar[float] = 60.0
    known_tasks: ClassVar[tuple[str, ...]] = GAMES
    example_task: ClassVar[str] = "ms_pacman"

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_range(self, "num_threads", 0, 1_024, "more threads are not faster")
        config_checks.check_range(
            self, "no_op_max", 0, 10_000, "emulators count in 32 bits, and games end by then"
        )
        config_checks.check_range(self, "sticky_actions", 0, below=1)

    def check_task(self, task: str) -> str:
        """Takes "ms_pacman" and, as gymnasium calls it, "ALE/MsPacman-v5"."""
        return super().check_task(suites.of_gymnasium_id(task, _IDS, GAMES))

    def protocol(self) -> dict[str, Any]:
        """See `EnvironmentConfig`."""
        values = dataclasses.asdict(self).items()
        name = next((name for name, own in PROTOCOLS.items() if own.items() <= values), "own")
        return super().protocol() | {
            "protocol": name,
            # Env frames at the start of an episode, sampled uniformly.
            "no_ops": f"1 to {self.no_op_max}" if self.no_op_max else "none",
            "sticky_actions": self.sticky_actions,
            "full_action_space": self.full_action_space,
            # The discount at a lost life is for the learner only.
            "life_loss_ends_episode": False,
        }

    def make(self, task: str, num_envs: int, seed: int, rendering: bool) -> "Atari":
        """See `EnvironmentConfig`."""
        return Atari(self, task, num_envs, seed, rendering)


class Atari(base.BatchedEnvironment):
    """N games with the papers' preprocessing: 84x84 grey frames, action repeat, no-op starts.

    Rewards are raw and frames are not stacked: clipping and stacking belong to the learner.
    """

    def __init__(self, config: AtariConfig, task: str, num_envs: int, seed: int, rendering: bool):
        """Starts the emulators; see `EnvironmentConfig.make`."""
        from ale_py import vector_env

        emulate = functools.partial(
            vector_env.AtariVectorEnv,
            task,
            num_envs,
            num_threads=config.num_threads,
            frameskip=config.action_repeat,
            noop_max=config.no_op_max + 1,  # ALE samples from 0 to one less; see `_play_no_ops`.
            max_num_frames_per_episode=_NO_LIMIT,
            repeat_action_probability=config.sticky_actions,
            full_action_space=config.full_action_space,
            stack_num=1,
            use_fire_reset=False,
            reward_clipping=False,
        )
        self._games = emulate(img_height=HEIGHT, img_width=WIDTH)
        # The same games in colour: ALE's vector environment returns images of one format.
        self._screens = (
            emulate(img_height=SCREEN_HEIGHT, img_width=SCREEN_WIDTH, grayscale=False)
            if rendering
            else None
        )
        super().__init__(
            num_envs,
            action_repeat=config.action_repeat,
            observation=observations.image_spec(HEIGHT, WIDTH, 1),
            action=specs.DiscreteArray(int(self._games.single_action_space.n), name="action"),
        )
        self._seed: int | None = seed
        self._starts_with_no_ops = config.no_op_max > 0
        self._life_loss_is_end = config.life_loss_is_end

    def _reset(self) -> np.ndarray:
        observation, info = self._games.reset(seed=self._seed)
        if self._screens:
            self._images, _ = self._screens.reset(seed=self._seed)
        self._seed = None  # With this value, ALE continues the random streams.
        observation, info = self._play_no_ops(self._over, observation, info)
        self._lives, self._has_ended = info["lives"], np.zeros(self.num_envs, bool)
        return _channels_last(observation)

    def _play_no_ops(
        self, is_first: np.ndarray, observation: np.ndarray, info: dict[str, np.ndarray]
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Restarts the games of `is_first` until each has started with a no-op.

        ALE samples the number of no-ops uniformly from 0, the papers from 1.
        """
        while self._starts_with_no_ops:
            without = is_first & (info["episode_frame_number"] == 0)
            if not without.any():
                break
            observation, info = self._restart(without)
        return observation, info

    def _restart(self, games: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Starts a new episode of the games of a mask bool [N]; the others do not change."""
        if self._screens:
            self._images, _ = self._screens.reset(options={"reset_mask": games})
        return self._games.reset(options={"reset_mask": games})

    def _step(self, actions: np.ndarray, is_first: np.ndarray) -> base.Transition:
        if self._screens:
            self._screens.send(actions)
        observation, reward, terminated, truncated, info = self._games.step(actions)
        if self._screens:
            self._images, *_ = self._screens.recv()
        # ALE restarts only the games that it has ended itself.
        cut = is_first & ~self._has_ended
        if cut.any():
            observation, info = self._restart(cut)
        observation, info = self._play_no_ops(is_first, observation, info)
        lives = info["lives"]
        # ALE's own life-loss signal looks like the end of an episode, after which nothing restarts.
        # It also misses the loss of the last but one life in games that count the last life as 0.
        lost_life = (lives < self._lives) & ~is_first
        ends = terminated | (lost_life & self._life_loss_is_end)
        self._lives, self._has_ended = lives, (terminated | truncated) & ~is_first
        return base.Transition(_channels_last(observation), reward, 1.0 - ends, self._has_ended)

    def render(self, index: int) -> np.ndarray:
        """Returns the screen, 210x160."""
        if not self._screens:
            raise RuntimeError("render() needs an environment made with rendering=True")
        return self._images[index, 0]

    def close(self) -> None:
        """Ends the threads of the emulators."""
        super().close()
        self._games = self._screens = None  # ALE ends them with its object, not in its close().


def _channels_last(observation: np.ndarray) -> np.ndarray:
    """Converts ALE's [N, 1, H, W] to [N, H, W, 1]."""
    return observation.reshape(-1, HEIGHT, WIDTH, 1)
