"""Videos of evaluated episodes: a file for each, and a short version of it."""

import contextlib
import dataclasses
import itertools
import logging
import pathlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from laser_tf import errors
from laser_tf.environments import base, environment_config, factory, faults
from laser_tf.evaluation import episode_runner
from laser_tf.workdir import atomic

_MAX_SHORT_IMAGES = 150  # A few hundred kilobytes.
_MAX_SHORT_WIDTH = 320  # Pixels.
_SHORT_IMAGE_MILLISECONDS = 67
_ERRORS = base.RenderError, faults.EnvironmentFailedError, ImportError, OSError, ValueError


class Video(NamedTuple):
    """Video of an episode."""

    path: pathlib.Path
    suffix: str  # "_" and the task if the evaluation has several tasks, otherwise "".
    gif: bytes  # A short version.


def write_medians(
    folder: pathlib.Path,
    stem: str,
    config: environment_config.EnvironmentConfig,
    seed: int,
    episodes: Sequence[episode_runner.Episode],
    actions: Sequence[np.ndarray],
) -> list[Video]:
    """Writes a video of the episode of median return of each task, and logs failures.

    Args:
      folder: Directory of the videos.
      stem: First part of the files' names.
      config: Environments of the evaluation.
      seed: Seed of the first environment.
      episodes: Episodes of the evaluation.
      actions: Actions of all environments at each step since their start, [N, ...].
    """
    videos = []
    for task, of_task in zip(config.tasks, episode_runner.by_task(episodes), strict=True):
        median = sorted(of_task, key=lambda episode: episode.episode_return)[len(of_task) // 2]
        suffix = f"_{task}" if len(config.tasks) > 1 else ""
        # Ids of gymnasium can contain a slash.
        path = folder / f"{stem}{suffix.replace('/', '_')}.mp4"
        try:
            videos.append(Video(path, suffix, write(path, config, seed, median, actions)))
        except _ERRORS as error:  # The result is complete without a video.
            logging.warning("No video: %s", errors.one_line(error))
    return videos


def write(
    path: pathlib.Path,
    config: environment_config.EnvironmentConfig,
    seed: int,
    episode: episode_runner.Episode,
    actions: Sequence[np.ndarray],
) -> bytes:
    """Repeats an episode from its environment's seed and its actions, and renders it.

    Returns a GIF of images spread evenly over the episode. Raises RenderError if the environment
    cannot be rendered, and OSError if the video cannot be written; then no file is left. For the
    arguments see `write_medians`.
    """
    import imageio.v2 as imageio  # Here, so that training starts without it.

    images = _same_size(_render(config, seed, episode, actions))
    images = itertools.chain([next(images)], images)  # Fails before a file is created.
    path.parent.mkdir(exist_ok=True)
    period = -(-(episode.length + 1) // _MAX_SHORT_IMAGES)
    short = []
    frames_per_second = config.frames_per_second / config.action_repeat
    # An incomplete video must not look like a result, not even after a kill.
    unfinished = path.with_suffix(f".unfinished{path.suffix}")
    try:
        writer = imageio.get_writer(unfinished, fps=frames_per_second, macro_block_size=2)
        with contextlib.closing(writer):  # The writer's own context closes it on success only.
            for index, image in enumerate(images):
                writer.append_data(image)
                if index % period == 0:
                    stride = -(-image.shape[1] // _MAX_SHORT_WIDTH)
                    short.append(image[::stride, ::stride].copy())
        atomic.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    return imageio.mimwrite(
        imageio.RETURN_BYTES, short, format="GIF", loop=0, duration=_SHORT_IMAGE_MILLISECONDS
    )


def _same_size(images: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    """Crops and pads images to the size of the first one, rounded up to even numbers.

    A video has one size, and its codec needs an even height and width.
    """
    first = next(images)
    height, width = (size + size % 2 for size in first.shape[:2])
    for image in itertools.chain([first], images):
        fitted = np.zeros((height, width, 3), np.uint8)
        fitted[: image.shape[0], : image.shape[1]] = image[:height, :width]
        yield fitted


def _render(
    config: environment_config.EnvironmentConfig,
    seed: int,
    episode: episode_runner.Episode,
    actions: Sequence[np.ndarray],
) -> Iterator[np.ndarray]:
    """Yields the images of an episode; logs a warning if its return is not repeated."""
    single = dataclasses.replace(config, task=config.tasks[episode.task], reward_scales=())
    index = episode.environment
    environment = factory.make_environment(single, seed=seed + index, num_envs=1, rendering=True)
    repeated_return = 0.0
    with contextlib.closing(environment):
        environment.reset()
        for step in range(episode.first_step + episode.length):
            is_shown = step >= episode.first_step
            if is_shown:
                yield environment.render(0)
            output = environment.step(actions[step][index : index + 1])
            if is_shown:
                repeated_return += float(output.reward[0])
        yield environment.render(0)
    if not np.isclose(repeated_return, episode.episode_return, rtol=1e-3, atol=1e-3):
        logging.warning(
            "The video shows another episode, with return %g instead of %g: seed and actions do "
            "not determine an episode of this environment.",
            repeated_return,
            episode.episode_return,
        )
