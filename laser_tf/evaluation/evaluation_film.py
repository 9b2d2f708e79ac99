"""Films of evaluated episodes: a file each, and a short one for TensorBoard."""

import contextlib
import dataclasses
import itertools
import logging
import pathlib
from collections.abc import Iterator, Sequence

import imageio.v2 as imageio
import numpy as np

from laser_tf.environments import environment_config, factory
from laser_tf.evaluation import episode_player

_SHORT_PICTURES = 150  # of an episode, at most, for TensorBoard: a few hundred kilobytes
_SHORT_WIDTH = 320  # pixels, at most
_SHORT_PICTURE_MS = 67  # how long each is shown


def film(
    path: pathlib.Path,
    played: environment_config.EnvironmentConfig,
    seed: int,
    game: episode_player.Game,
    actions: Sequence[np.ndarray],
) -> bytes:
    """Plays a game again from its environment's seed and its actions, this time with pictures.

    Args:
      path: of the film.
      played: the environments.
      seed: of the first environment.
      game: which episode.
      actions: int32 [N] a step, of all environments since their start.

    Returns:
      A GIF of pictures spread evenly over the whole episode.

    Raises:
      RenderError: for an environment that cannot be drawn; no file is left.
      OSError: if the film cannot be written.
    """
    pictures = _same_size(_pictures(played, seed, game, actions))
    pictures = itertools.chain([next(pictures)], pictures)  # before a file is made in vain
    path.parent.mkdir(exist_ok=True)
    frames_per_second = played.frames_per_second / played.action_repeat
    every = -(-(game.length + 1) // _SHORT_PICTURES)
    short = []
    try:
        writer = imageio.get_writer(path, fps=frames_per_second, macro_block_size=2)
        with contextlib.closing(writer):  # The writer's own context closes it on success only.
            for index, picture in enumerate(pictures):
                writer.append_data(picture)
                if index % every == 0:
                    stride = -(-picture.shape[1] // _SHORT_WIDTH)
                    short.append(picture[::stride, ::stride].copy())
    except BaseException:
        path.unlink(missing_ok=True)  # An incomplete video must not look like a result.
        raise
    return imageio.mimwrite(
        imageio.RETURN_BYTES,
        short,
        format="GIF",
        loop=0,
        duration=_SHORT_PICTURE_MS,
    )


def _same_size(images: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    """Crops and pads images to the size of the first one, rounded up to even numbers.

    A video has one size, and its codec needs an even height and width.
    """
    first = next(images)
    height, width = (size + size % 2 for size in first.shape[:2])
    is_logged = False
    for image in itertools.chain([first], images):
        if image.shape != first.shape and not is_logged:
            is_logged = True
            logging.warning(
                "render() must return images of one size for a video, got %s after %s: cropped and "
                "padded to the first size", list(image.shape), list(first.shape),
            )  # fmt: skip
        fitted = np.zeros((height, width, 3), np.uint8)
        fitted[: image.shape[0], : image.shape[1]] = image[:height, :width]
        yield fitted


def _pictures(
    played: environment_config.EnvironmentConfig,
    seed: int,
    game: episode_player.Game,
    actions: Sequence[np.ndarray],
) -> Iterator[np.ndarray]:
    alone = dataclasses.replace(played, task=played.tasks[game.task], reward_scales=())
    environment = factory.make_environment(
        alone, seed=seed + game.environment, num_envs=1, rendering=True
    )
    with contextlib.closing(environment):
        environment.reset()
        shown = 0.0
        for step in range(game.first_step + game.length):
            if step >= game.first_step:
                yield environment.render(0)
            output = environment.step(actions[step][game.environment : game.environment + 1])
            shown += float(output.reward[0]) if step >= game.first_step else 0.0
        yield environment.render(0)
    if not np.isclose(shown, game.episode_return, rtol=1e-3, atol=1e-3):
        logging.warning(
            "the film shows another episode, of return %g and not %g: the environment cannot be "
            "repeated by its seed and its actions", shown, game.episode_return,
        )  # fmt: skip
