"""DMLab-30 (Beattie et al. 2016; Espeholt et al. 2018): thirty levels of DeepMind Lab.

The engine's Python API is described in its docs/users/python_api.md, actions in actions.md.
"""

import dataclasses
import functools
import pathlib
import shutil
import uuid
from collections.abc import Callable
from typing import Any, ClassVar

import dm_env
import numpy as np
from dm_env import specs

from laser_tf import config_checks, observations
from laser_tf.environments import adapter, python_config

HEIGHT, WIDTH = 72, 96  # As in IMPALA and later work.

# Hessel et al. 2018 (Multi-task Deep Reinforcement Learning with PopArt), the appendix's table of
# actions, also used by R2D2 (section 2.3). Looking is in pixels of mouse movement per frame, the
# other values are directions or buttons.
# fmt: off
ACTIONS = (
    # look right, look down, strafe right, move forward, fire, jump, crouch
    (0, 0, 0, 1, 0, 0, 0),  # forward
    (0, 0, 0, -1, 0, 0, 0),  # backward
    (0, 0, -1, 0, 0, 0, 0),  # strafe left
    (0, 0, 1, 0, 0, 0, 0),  # strafe right
    (-10, 0, 0, 0, 0, 0, 0),  # look left a little
    (10, 0, 0, 0, 0, 0, 0),  # look right a little
    (-60, 0, 0, 0, 0, 0, 0),  # look left a lot
    (60, 0, 0, 0, 0, 0, 0),  # look right a lot
    (0, 10, 0, 0, 0, 0, 0),  # look down
    (0, -10, 0, 0, 0, 0, 0),  # look up
    (-10, 0, 0, 1, 0, 0, 0),  # forward and look left a little
    (10, 0, 0, 1, 0, 0, 0),  # forward and look right a little
    (-60, 0, 0, 1, 0, 0, 0),  # forward and look left a lot
    (60, 0, 0, 1, 0, 0, 0),  # forward and look right a lot
    (0, 0, 0, 0, 1, 0, 0),  # fire
)

# Names in training. Two have another level for testing, see `DMLabConfig.level`.
LEVELS = (
    "rooms_collect_good_objects_train", "rooms_exploit_deferred_effects_train",
    "rooms_select_nonmatching_object", "rooms_watermaze", "rooms_keys_doors_puzzle",
    "language_select_described_object", "language_select_located_object",
    "language_execute_random_task", "language_answer_quantitative_question",
    "lasertag_one_opponent_small", "lasertag_three_opponents_small", "lasertag_one_opponent_large",
    "lasertag_three_opponents_large",
    "natlab_fixed_large_map", "natlab_varying_map_regrowth", "natlab_varying_map_randomized",
    "skymaze_irreversible_path_hard", "skymaze_irreversible_path_varied",
    "psychlab_arbitrary_visuomotor_mapping", "psychlab_continuous_recognition",
    "psychlab_sequential_comparison", "psychlab_visual_search",
    "explore_object_locations_small", "explore_object_locations_large",
    "explore_obstructed_goals_small", "explore_obstructed_goals_large",
    "explore_goal_locations_small", "explore_goal_locations_large", "explore_object_rewards_few",
    "explore_object_rewards_many",
)
# fmt: on

# Mixed into every seed by the engine, so that tests use no map of training. From IMPALA's published
# code; the default in training is 0.
_HOLD_OUT_MIXER_SEED = 0x600D5EED
_FRAME, _TEXT = "RGB_INTERLEAVED", "INSTR"
_MAX_SEED = 2**31 - 1  # The engine holds a seed in a C int.


@dataclasses.dataclass(frozen=True, kw_only=True)
class DMLabConfig(python_config.WorkerConfig):
    """Configuration of DMLab-30's levels."""

    suite: str = "dmlab"
    task: str = "rooms_watermaze"
    max_frames_per_episode: int = 108_000  # env frames; limit that truncates an episode
    action_repeat: int = 4  # env frames; per agent step
    instruction_length: int = 16  # words; of the longest text; 0 reads none
    hold_out: bool = False  # run the levels and maps held out for testing
    level_cache: str = ""  # folder for compiled maps; "": none are kept
    dataset_path: str = ""  # folder of the images of two psychlab levels
    num_workers: int = 1_024  # processes; at most; by default one per environment
    reply_seconds: float = 120.0  # seconds; an engine that takes longer is killed and restarted

    frames_per_second: ClassVar[float] = 60.0
    known_tasks: ClassVar[tuple[str, ...]] = LEVELS
    example_task: ClassVar[str] = "rooms_watermaze"
    tasks_share_specs: ClassVar[bool] = True
    engine_repeats_actions: ClassVar[bool] = True
    package: ClassVar[str] = "deepmind_lab"
    missing_package: ClassVar[str] = (
        "DeepMind Lab is not installed, and has no package on PyPI: build one by 'bazel build -c "
        "opt //python/pip_package:build_pip_package' with this environment's Python, see "
        "https://github.com/google-deepmind/lab/blob/master/docs/users/build.md"
    )

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_range(self, "instruction_length", 0, 10_000)

    def max_words(self) -> int:
        """See `WorkerConfig`."""
        return self.instruction_length

    def protocol(self) -> dict[str, Any]:
        """See `EnvironmentConfig`."""
        return super().protocol() | {"hold_out": self.hold_out}

    def level(self, task: str) -> str:
        """Returns the level of a task; held out, its test level or else itself with other seeds."""
        is_other = self.hold_out and task.endswith("_train")
        return task.removesuffix("_train") + "_test" if is_other else task

    def engine_settings(self) -> dict[str, str]:
        """Returns the settings of the engine, as in IMPALA's published code."""
        settings = {"width": str(WIDTH), "height": str(HEIGHT), "logLevel": "WARN"}
        settings["mixerSeed"] = str(_HOLD_OUT_MIXER_SEED if self.hold_out else 0)
        if self.hold_out:  # Otherwise test levels do not load.
            settings["allowHoldOutLevels"] = "true"
        if self.dataset_path:
            settings["datasetPath"] = str(pathlib.Path(self.dataset_path).expanduser())
        return settings

    def maker(self, task: str, rendering: bool) -> Callable[[int], dm_env.Environment]:
        """See `WorkerConfig`."""
        return functools.partial(Level, self, self.level(task))


class Level(adapter.Adapter):
    """One level; frames are uint8 [72, 96, 3], with the level's instruction as `text`.

    Actions are the 15 actions of `ACTIONS`. Rewards are raw. A level ends by its clock, after some
    minutes. As in IMPALA's code, this is the end of an episode with discount 0. The engine has no
    last observation, so the step repeats the previous one.
    """

    def __init__(self, config: DMLabConfig, level: str, seed: int):
        """Starts the engine; the seeds of its episodes are sampled from `seed`."""
        import deepmind_lab

        self._with_text = config.instruction_length > 0
        lab = deepmind_lab.Lab(
            f"contributed/dmlab30/{level}",
            [_FRAME, _TEXT] if self._with_text else [_FRAME],
            config=config.engine_settings(),
            level_cache=LevelCache(config.level_cache) if config.level_cache else None,
        )
        image = observations.image_spec(HEIGHT, WIDTH, 3)
        spec = {"image": image, "text": specs.StringArray(())} if self._with_text else image
        super().__init__(lab, spec, specs.DiscreteArray(len(ACTIONS), name="action"))
        self._random = np.random.RandomState(seed)
        self._actions = np.array(ACTIONS, np.intc)
        self._action_repeat = config.action_repeat

    def reset(self) -> dm_env.TimeStep:
        """See `dm_env.Environment`."""
        self._engine.reset(seed=int(self._random.randint(_MAX_SEED)))
        return dm_env.restart(self._observe())

    def step(self, action: int) -> dm_env.TimeStep:
        """Holds an action of `ACTIONS` for `action_repeat` frames."""
        reward = self._engine.step(self._actions[action], num_steps=self._action_repeat)
        if not self._engine.is_running():
            return dm_env.termination(reward, self._shown)
        return dm_env.transition(reward, self._observe())

    def _observe(self) -> Any:
        leaves = self._engine.observations()
        frame = leaves[_FRAME]
        self._shown = {"image": frame, "text": leaves[_TEXT]} if self._with_text else frame
        return self._shown


class LevelCache:
    """Compiled maps in a folder that any number of processes read and write at once.

    The compilation of a map takes seconds, and many levels have a new map in each episode. Files
    are named by the key of the engine, so that maps compiled elsewhere can be used.
    """

    def __init__(self, folder: str):
        self._folder = pathlib.Path(folder).expanduser()
        self._folder.mkdir(parents=True, exist_ok=True)

    def fetch(self, key: str, pk3_path: str) -> bool:
        """Copies the map of a key to `pk3_path`; returns False if it is missing."""
        try:
            shutil.copyfile(self._folder / key, pk3_path)
        except FileNotFoundError:
            return False
        return True

    def write(self, key: str, pk3_path: str) -> None:
        """Stores the map at `pk3_path` atomically."""
        path = self._folder / key
        if path.exists():
            return
        own = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
        try:
            shutil.copyfile(pk3_path, own)
            own.replace(path)
        finally:
            own.unlink(missing_ok=True)
