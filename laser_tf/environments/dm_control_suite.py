"""DeepMind's control suite (Tassa et al. 2018): MuJoCo's bodies, continuous actions."""

import ctypes
import dataclasses
import functools
import os
from collections.abc import Callable, Collection
from typing import Any, ClassVar

import dm_env
import numpy as np

from laser_tf import errors, observations
from laser_tf.environments import adapter, faults, python_config

# Domain -> seconds of an env frame, and tasks of `dm_control.suite.ALL_TASKS` of dm_control 1.0.34.
# The actions of lqr are practically unbounded.
_DOMAINS = {
    "acrobot": (0.01, "swingup swingup_sparse"),
    "ball_in_cup": (0.02, "catch"),
    "cartpole": (0.01, "balance balance_sparse swingup swingup_sparse two_poles three_poles"),
    "cheetah": (0.01, "run"),
    "dog": (0.015, "stand walk trot run fetch"),
    "finger": (0.02, "spin turn_easy turn_hard"),
    "fish": (0.04, "upright swim"),
    "hopper": (0.02, "stand hop"),
    "humanoid": (0.025, "stand walk run run_pure_state"),
    "humanoid_CMU": (0.02, "stand walk run"),
    "manipulator": (0.01, "bring_ball bring_peg insert_ball insert_peg"),
    "pendulum": (0.02, "swingup"),
    "point_mass": (0.02, "easy hard"),
    "quadruped": (0.02, "walk run escape fetch"),
    "reacher": (0.02, "easy hard"),
    "stacker": (0.01, "stack_2 stack_4"),
    "swimmer": (0.03, "swimmer6 swimmer15"),
    "walker": (0.025, "stand walk run"),
}
TASKS = {
    f"{domain}/{task}": seconds
    for domain, (seconds, tasks) in _DOMAINS.items()
    for task in tasks.split()
}

_HEIGHT, _WIDTH = 240, 320  # Of images of videos.
_MAX_PIXELS = 480  # Rows of MuJoCo's buffer.
_CAMERA = 0  # First camera of the task.
# Shadows and reflections take four times the time on a CPU.
_FLAGS = {"shadow": False, "reflection": False}
_RENDERER = "MUJOCO_GL"  # Read by dm_control when it is imported.
_NO_RENDERER = "disabled"
_LIBRARIES = {"egl": ("libEGL.so.1",), "osmesa": ("libOSMesa.so.8", "libOSMesa.so.6")}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DmControlConfig(python_config.PythonConfig):
    """Configuration; `arguments` are those of the task's function in dm_control, and `pixels`."""

    suite: str = "dm_control"
    task: str = "cartpole/swingup"
    max_frames_per_episode: int = 1_000  # env frames; limit that truncates an episode; 0: none

    known_tasks: ClassVar[Collection[str]] = TASKS
    example_task: ClassVar[str] = "cheetah/run"
    package: ClassVar[str] = "dm_control"
    missing_package: ClassVar[str] = "dm_control is not installed: run make control"

    def __post_init__(self):
        super().__post_init__()
        pixels = self.keyword_arguments().get("pixels", 0)
        if type(pixels) is not int or not 0 <= pixels <= _MAX_PIXELS:
            raise errors.ConfigError(
                f"arguments must have pixels from 0 (vectors) to {_MAX_PIXELS} (image sides), got "
                f"pixels={pixels!r}. Use e.g. pixels=84."
            )

    @property
    def frames_per_second(self) -> float:  # type: ignore[override]  # each task's own
        """Frame rate of videos, which run in the time of the task."""
        return 1 / TASKS[self.tasks[0]]

    def maker(self, task: str, rendering: bool) -> Callable[[int], dm_env.Environment]:
        """See `PythonConfig`."""
        return functools.partial(make, task, self.keyword_arguments(), rendering)


def make(task: str, arguments: dict[str, Any], rendering: bool, seed: int) -> "Control":
    """Makes an environment of the suite, in a worker.

    `arguments` are those of the task's function in dm_control, such as time_limit in seconds, and
    pixels: the rows and columns of an image that replaces the vectors.

    Raises:
      UnsupportedSpaceError: If dm_control cannot use the installed MuJoCo, or cannot render the
        images that are to be observed.
    """
    arguments = {"random": seed, **arguments}
    pixels = arguments.pop("pixels", 0)
    _choose_renderer(bool(pixels or rendering))
    domain, _, name = task.partition("/")
    try:
        from dm_control import suite

        environment = suite.load(domain, name, task_kwargs=arguments)
    except (AttributeError, ImportError) as error:  # Other versions of MuJoCo have other fields.
        raise faults.UnsupportedSpaceError(
            f"dm_control cannot use the installed MuJoCo ({faults.describe(error)}): run make "
            "control, which installs the version that it needs"
        ) from error
    return Control(environment, pixels)


def _choose_renderer(renders: bool) -> None:
    """Chooses dm_control's renderer before its import, which would log each missing display."""
    # Mesa would start a thread per core for each environment.
    os.environ.setdefault("LP_NUM_THREADS", "0")
    if not renders:
        os.environ[_RENDERER] = _NO_RENDERER
    elif _RENDERER not in os.environ:
        found = (name for name, libraries in _LIBRARIES.items() if any(map(_loads, libraries)))
        os.environ[_RENDERER] = next(found, _NO_RENDERER)


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


class Control(adapter.Adapter):
    """One task, seen as vectors or as images uint8 [H, W, 3]; its episodes end by time alone."""

    def __init__(self, environment: Any, pixels: int):
        """Takes a `dm_control.rl.control.Environment`, and the rows and columns of images or 0."""
        image = observations.image_spec(pixels, pixels, 3)
        spec = image if pixels else environment.observation_spec()
        super().__init__(environment, spec, environment.action_spec())
        self._pixels = pixels
        if pixels:  # Raises an error if images cannot be rendered.
            self._draw(pixels, pixels)

    def reset(self) -> dm_env.TimeStep:
        """See `dm_env.Environment`."""
        return self._with_image(self._engine.reset())

    def step(self, action: np.ndarray) -> dm_env.TimeStep:
        """See `dm_env.Environment`."""
        return self._with_image(self._engine.step(action))

    def _with_image(self, time_step: dm_env.TimeStep) -> dm_env.TimeStep:
        if not self._pixels:
            return time_step
        return time_step._replace(observation=_Image(self._draw, self._pixels))

    def render(self) -> np.ndarray:
        """Returns an image for a video, uint8 [240, 320, 3]."""
        return self._draw(_HEIGHT, _WIDTH)

    def _draw(self, height: int, width: int) -> np.ndarray:
        """Renders the view of the first camera of the task, uint8 [height, width, 3]."""
        try:
            return self._engine.physics.render(
                height, width, camera_id=_CAMERA, render_flag_overrides=_FLAGS
            )
        except Exception as error:  # OpenGL raises many types.
            raise faults.UnsupportedSpaceError(
                "dm_control renders with libEGL or libOSMesa (Debian: libegl1 and "
                f"libgl1-mesa-dri): {faults.describe(error)}"
            ) from error


@dataclasses.dataclass
class _Image:
    """An image that is rendered when it is read, so only for the last of repeated frames."""

    draw: Callable[[int, int], np.ndarray]
    pixels: int

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.draw(self.pixels, self.pixels), dtype)
