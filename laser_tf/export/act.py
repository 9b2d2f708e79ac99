"""Acts on the observations of an environment, and returns its actions, with an exported policy.

python act.py CartPole-v1

`launch.export` copies this file into the directory of the policy. It needs TensorFlow and NumPy
alone. As a program it runs episodes of a gymnasium environment.
"""

import json
import os
import pathlib
import re
import sys
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

DESCRIPTION = "policy.json"

_MASK = "action_mask"
_SEEDS = 2**31  # Seeds of `sample` are below.


class State(NamedTuple):
    """Memory of a policy between two steps of B environments."""

    tensors: dict[str, Any]  # Name -> tensor [B, ...]: core state, earlier frames, last action.
    is_first: np.ndarray  # bool [B], environments whose next observation opens an episode.
    is_batch: bool  # Whether observations and actions have a batch axis.


class Policy:
    """A policy with the observations and actions of its environment."""

    def __init__(
        self,
        functions: Any,
        about: Mapping[str, Any],
        task: str | None = None,
        seed: int | None = None,
    ):
        """Wraps functions of tensors; raises ValueError for an unknown task.

        Args:
          functions: Object with the functions `initial_state`, `greedy` and `sample`.
          about: Content of `policy.json`.
          task: Name of the environment's task in `policy.json`; None for the first one.
          seed: Seed of sampled actions; None for a random one.
        """
        tasks = about["tasks"]
        name = next(iter(tasks)) if task is None else task
        if name not in tasks:
            raise ValueError(f"task must be {' or '.join(tasks)}, got {name}.")
        if seed is not None and seed < 0:
            raise ValueError(f"seed must be 0 or more, or None for a random one, got {seed}.")
        self._functions = functions
        self._observation = about["observation"]
        self._task = tasks[name]
        self._inputs = {entry["name"]: entry for entry in about["inputs"]}
        # Observations are the first inputs.
        self._offsets = dict(zip(self._inputs, self._task["observation_offsets"], strict=False))
        self._random = np.random.default_rng(seed)

    def initial_state(self, batch_size: int | None = None) -> State:
        """Returns the state before the first observation of `batch_size` episodes.

        None stands for one episode, without a batch axis.
        """
        size = 1 if batch_size is None else batch_size
        tensors = self._functions.initial_state(tf.constant(size, tf.int32))
        return State(tensors, np.ones(size, bool), batch_size is not None)

    def act(
        self,
        observation: Any,
        state: State,
        *,
        reward: Any = 0.0,
        discount: Any = 1.0,
        is_first: Any = None,
        action_mask: Any = None,
        greedy: bool = True,
    ) -> tuple[Any, State]:
        """Returns the action as the environment accepts it, and the state for the next call.

        In a batch, arrays of observations and actions have a leading axis [B], and a text is B
        texts. Raises ValueError if the observation has other parts, shapes or dtypes of images.

        Args:
          observation: Observation as the environment returns it: an array, a number, a text, or a
            nest of them.
          state: State of `initial_state` or of the last call.
          reward: Raw reward that arrived with the observation, or [B]. Only recurrent agents read
            rewards.
          discount: 0 where the episode has terminated, otherwise 1; or [B].
          is_first: Whether the observation opens an episode, or bool [B]. By default, the first
            observation after `initial_state` does.
          action_mask: Allowed actions, bool [A] or [B, A], of an environment that returns them in
            `info`. Masks in the observation need no argument.
          greedy: Whether to take the best action instead of sampling.
        """
        if action_mask is not None and _has_mask(self._observation) and not _has_mask(observation):
            observation = {"observation": observation, _MASK: action_mask}
        size = len(state.is_first)
        first = state.is_first if is_first is None else np.broadcast_to(is_first, [size])
        reward = np.where(first, 0, np.multiply(reward, self._task["reward_scale"]))
        step = (
            self._to_policy(observation, self._observation, state),
            tf.constant(np.broadcast_to(reward, [size]), tf.float32),
            tf.constant(np.where(first, 1, np.broadcast_to(discount, [size])), tf.float32),
            tf.constant(first, tf.bool),
            state.tensors,
        )
        if greedy:
            actions, tensors = self._functions.greedy(*step)
        else:
            seed = tf.constant(self._random.integers(_SEEDS, size=2), tf.int32)
            actions, tensors = self._functions.sample(*step, seed)
        native = to_environment(actions.numpy(), self._task["action"])
        following = State(tensors, np.zeros(size, bool), state.is_batch)
        native = native if state.is_batch else tf.nest.map_structure(lambda leaf: leaf[0], native)
        return native, following

    def _to_policy(self, value: Any, names: Any, state: State) -> Any:
        """Converts a part of an observation to tensors [B, ...], given the names of its inputs."""
        if isinstance(names, Mapping):
            if not isinstance(value, Mapping) or not set(names) <= set(value):
                got = list(value) if isinstance(value, Mapping) else type(value).__name__
                hint = f" Pass the mask in info as {_MASK}." if _MASK in names else ""
                raise ValueError(f"observation must have the keys {list(names)}, got {got}.{hint}")
            return {key: self._to_policy(value[key], part, state) for key, part in names.items()}
        if isinstance(names, list | tuple):
            if len(value) != len(names):
                raise ValueError(f"observation must have {len(names)} parts, got {len(value)}.")
            parts = zip(value, names, strict=True)
            return tuple(self._to_policy(part, name, state) for part, name in parts)
        try:
            array = np.asarray(value) if state.is_batch else np.asarray(value)[None]
        except ValueError:
            raise ValueError(
                f"{names} must be one array, got parts of other shapes. Pass it without info."
            ) from None
        if array.shape[:1] != state.is_first.shape:
            size = len(state.is_first)
            raise ValueError(f"{names} must be a batch of {size}, got {list(array.shape)}.")
        return tf.constant(to_policy(array, self._inputs[names], self._offsets[names]))


def _has_mask(observation: Any) -> bool:
    return isinstance(observation, Mapping) and _MASK in observation


def load(
    folder: str | os.PathLike[str], task: str | None = None, seed: int | None = None
) -> Policy:
    """Loads an exported policy; for the arguments see `Policy`."""
    about = json.loads((pathlib.Path(folder) / DESCRIPTION).read_text())
    return Policy(tf.saved_model.load(str(folder)), about, task, seed)


def to_policy(batch: np.ndarray, entry: Mapping[str, Any], offset: Any) -> np.ndarray:
    """Converts a part of the observations of B environments for the policy.

    `batch` are numbers [B, ...] or texts [B]. `entry` and `offset` are its entries in `inputs` and
    `observation_offsets` of `policy.json`. Raises ValueError for another shape, an image of another
    dtype, or a text with too many words.
    """
    shape = [len(batch), *entry["shape"][1:]]
    takes_text = entry["dtype"] == "int32" and len(shape) == 2
    texts = batch.tolist() if takes_text and batch.dtype.kind in "USO" else []
    if texts and all(isinstance(text, str | bytes) for text in texts):
        return np.array([_word_numbers(text, shape[1]) for text in texts], np.int32)
    images = [shape, shape[:-1]] if shape[-1] == 1 else [shape]  # Grey ones may lack the channel.
    is_image = len(shape) == 4
    has_shape = list(batch.shape) in images if is_image else batch.size == np.prod(shape)
    # Other dtypes of an image of uint8 have other numbers, e.g. floats from 0 to 1.
    is_other = entry["dtype"] == "uint8" and batch.dtype not in (np.uint8, np.bool_)
    if not has_shape or is_other or batch.dtype.kind not in "biuf":
        raise ValueError(
            f"{entry['name']} must be {entry['dtype']} of the shape {shape[1:]}, got "
            f"{batch.dtype} of {list(batch.shape[1:])}."
        )
    numbers = batch * np.uint8(255) if batch.dtype == bool and entry["dtype"] == "uint8" else batch
    numbers = numbers.reshape([len(batch), -1]) - offset
    return numbers.reshape(shape).astype(entry["dtype"])


def _word_numbers(text: str | bytes, length: int) -> list[int]:
    """Returns the numbers of the words of a text, then zeros."""
    text = text.decode() if isinstance(text, bytes) else text
    words = [1 + zlib.crc32(word.encode()) % 1000 for word in re.findall(r"\w+", text.lower())]
    if len(words) > length:
        raise ValueError(f"a text must have at most {length} words, got {text!r}.")
    return words + [0] * (length - len(words))


def to_environment(actions: np.ndarray, own: Mapping[str, Any]) -> Any:
    """Converts actions [B, ...] to the environment's structure, numbers, dtypes and bounds.

    `own` is `action` of the task in `policy.json`: a leaf, or a nest of leaves.
    """
    return _take(list(np.reshape(actions, [len(actions), -1]).T), own)


def _take(columns: list[np.ndarray], own: Mapping[str, Any]) -> Any:
    """Converts the first columns [B], which it removes, to a leaf or nest."""
    if "tuple" in own:
        return tuple(_take(columns, part) for part in own["tuple"])
    if "dict" in own:
        return {key: _take(columns, part) for key, part in own["dict"].items()}
    bounds = np.array([own["minimum"], own["maximum"]], own["dtype"])
    taken = [columns.pop(0) for _ in range(bounds[0].size)]
    numbers = np.stack(taken, axis=-1).reshape([len(taken[0]), *own["shape"]])
    return np.clip((numbers + np.array(own["first"])).astype(own["dtype"]), *bounds)


def run(
    policy: Policy,
    environment: Any,
    episodes: int,
    action_repeat: int = 1,
    max_frames: int | None = None,
) -> list[float]:
    """Runs episodes of a gymnasium environment with greedy actions; returns their returns.

    Each action is taken for `action_repeat` frames, whose rewards add up. An episode is cut at
    `max_frames`, if given.
    """
    returns = []
    for _ in range(episodes):
        observation, info = environment.reset()
        state, is_over = policy.initial_state(), False
        reward, episode_return, frames = 0.0, 0.0, 0
        while not is_over:
            mask = info.get(_MASK)
            action, state = policy.act(observation, state, reward=reward, action_mask=mask)
            reward = 0.0
            for _ in range(action_repeat):
                observation, frame_reward, terminated, truncated, info = environment.step(action)
                reward += float(frame_reward)
                is_over = terminated or truncated
                if is_over:
                    break
            frames += action_repeat
            is_over = is_over or (max_frames is not None and frames >= max_frames)
            episode_return += reward
        returns.append(episode_return)
    return returns


def _main() -> None:
    """Runs ten episodes of the task on the command line as in training; prints their returns."""
    if len(sys.argv) != 2:
        sys.exit("error: TASK must be given. Use e.g. python act.py CartPole-v1.")
    task, folder = sys.argv[1], pathlib.Path(__file__).parent
    try:
        import gymnasium

        own = json.loads((folder / DESCRIPTION).read_text())["environment"]
        policy = load(folder, task)
        environment = gymnasium.make(task, **own.get("arguments", {}))
    except (ValueError, ImportError, OSError) as error:
        sys.exit(f"error: {error}")
    except gymnasium.error.Error as error:
        sys.exit(f"error: {error}")
    print(run(policy, environment, 10, own["action_repeat"], own["max_frames_per_episode"]))


if __name__ == "__main__":
    _main()
