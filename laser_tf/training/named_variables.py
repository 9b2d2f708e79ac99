"""Variables of agents and learners: names, comparison, checks and copies within a process."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import trackable_object_graph_pb2

from laser_tf import array_function, errors
from laser_tf.agents import base


def walk(
    trackable: object, path: str, seen: dict[int, object]
) -> Iterator[tuple[str, tf.Variable]]:
    """Yields each variable below an object once, except those of random generators.

    A name is the path of attributes from `path`, as in checkpoints; TensorFlow's names depend on
    the other variables of the process. Objects in `seen`, by their `id`, are omitted, and all
    objects that are found are added to it.
    """
    if id(trackable) in seen or isinstance(trackable, tf.random.Generator):
        return
    seen[id(trackable)] = trackable  # A reference, so that no other object gets its id.
    if isinstance(trackable, tf.Variable):
        yield path, trackable
        return
    for name, child in sorted(tf.train.TrackableView.children(trackable).items()):
        yield from walk(child, f"{path}/{name}", seen)


def saved(checkpoint: str, *attributes: str) -> dict[str, tf.TensorSpec]:
    """Returns the variables of a checkpoint below an object, as `walk` names them.

    `checkpoint` is the common path of the checkpoint's files without suffixes. The attributes are
    the path of the object from the `tf.train.Checkpoint`, and names start with the last one.

    Raises:
      Exception: Almost any exception of TensorFlow, if the checkpoint is damaged.
    """
    reader = tf.train.load_checkpoint(checkpoint)
    shapes, dtypes = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    graph = trackable_object_graph_pb2.TrackableObjectGraph()
    graph.ParseFromString(reader.get_tensor("_CHECKPOINTABLE_OBJECT_GRAPH"))
    found: dict[str, tf.TensorSpec] = {}
    seen = set()

    def visit(index: int, path: str) -> None:
        if index in seen or path.endswith("/_state_var"):  # variable of a random generator
            return
        seen.add(index)
        keys = {tensor.name: tensor.checkpoint_key for tensor in graph.nodes[index].attributes}
        if key := keys.get("VARIABLE_VALUE"):
            found[path] = tf.TensorSpec(shapes[key], dtypes[key])
            return
        for child in sorted(graph.nodes[index].children, key=lambda child: child.local_name):
            visit(child.node_id, f"{path}/{child.local_name}")

    index = 0
    for name in attributes:
        children = {child.local_name: child.node_id for child in graph.nodes[index].children}
        index = children[name]
    visit(index, attributes[-1])
    return found


def differences(
    there: Mapping[str, np.ndarray | tf.Variable | tf.TensorSpec],
    here: Mapping[str, np.ndarray | tf.Variable],
) -> list[str]:
    """Describes each difference in name, shape or dtype between two sets of variables."""
    found = []
    for name in dict.fromkeys([*here, *there]):
        theirs = _describe(there[name]) if name in there else "missing"
        ours = _describe(here[name]) if name in here else "missing"
        if theirs != ours:
            found.append(f"{name} is {theirs} there and {ours} here")
    return found


def _describe(value: np.ndarray | tf.Variable | tf.TensorSpec) -> str:
    return f"{np.dtype(getattr(value.dtype, 'as_numpy_dtype', value.dtype))}{list(value.shape)}"


class NonFiniteWeightsError(errors.UserError):
    """A variable of an agent or its optimiser holds NaN or infinity."""


def find_non_finite(named: Iterable[tuple[str, tf.Variable | np.ndarray]]) -> str | None:
    """Returns the name of the first value that holds NaN or infinity, or None."""
    for name, value in named:
        array = value.numpy() if isinstance(value, tf.Variable) else value
        if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
            return name
    return None


def weight_copier(
    source: base.Agent, target: base.Agent, learner_updates: tf.Variable
) -> Callable[[], int]:
    """Returns a function that copies weights between agents and returns their learner updates.

    A learner may continue in the meantime, so two variables may differ by an update. That is
    harmless, since each unroll stores the policy that sampled its actions.
    """
    pairs = list(zip(source.acting_variables, target.acting_variables, strict=True))

    def assign() -> tf.Tensor:
        updates = learner_updates.read_value()
        with tf.control_dependencies([updates]):
            for source_variable, target_variable in pairs:
                target_variable.assign(source_variable)
        return updates

    copy = array_function.ArrayFunction(assign)
    return lambda: int(copy())
