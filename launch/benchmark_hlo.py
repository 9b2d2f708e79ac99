"""XLA program of a learner's update, with its arithmetic and memory traffic."""

import math
import pathlib
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.compiler.xla import xla_data_pb2
from tensorflow.compiler.xla.service import hlo_pb2

from laser_tf.environments import factory
from laser_tf.host import hardware
from laser_tf.replay import stored_unroll
from laser_tf.replay.schemes import base as schemes_base
from laser_tf.training import assembly, run_config
from laser_tf.workdir import atomic

# Instructions between which values have to pass through memory. All others are assumed to be
# computed together with the instruction before or after.
_MEMORY_BOUNDS = ("convolution", "dot", "reduce-window", "select-and-scatter")
_BYTES = {"PRED": 1, "C64": 8, "C128": 16}  # of types that are not named by their bits


class Cost(NamedTuple):
    """Work of a program on a device.

    Attributes:
      flops: Floating-point operations of convolutions and matrix products, two for each product of
        an input and a weight. Products with padding do not count.
      bytes_moved: Bytes of the arguments and results of the program, and of the operands and
        results of its convolutions, matrix products and poolings. It is a lower bound: all other
        operations are assumed to read and write no memory.

    Both count a loop as often as it runs, and once if its number of steps depends on values.
    """

    flops: int
    bytes_moved: int


def write(config: run_config.RunConfig, path: pathlib.Path) -> dict[str, object]:
    """Writes the optimised program of an update, as text, and returns its measures.

    The learner is one device with the whole batch. XLA optimises for the device of this process,
    usually a CPU. The measures are those of the program before optimisation, which depends on the
    configuration and the compute dtype alone.
    """
    dtype, _ = hardware.choose_compute_dtype(config.learner.compute_dtype)
    spec = factory.environment_spec(config.environment)
    learner = assembly.build_learner(config, spec, dtype, jit=True)
    signature = assembly.unroll_signature(config, spec, learner.agent)
    batch = _blank_batch(config.replay, signature)
    atomic.write(path, learner.program(batch, stage="optimized_hlo"))
    cost = measure(learner.program(batch, stage="hlo_serialized"))
    return {
        "compute_dtype": dtype,
        "flops_per_update": cost.flops,
        "bytes_moved_per_update": cost.bytes_moved,
        "bytes_of_a_batch": sum(leaf.nbytes for leaf in tf.nest.flatten(batch)),
        "agent_steps_of_a_batch": config.replay.batch_size * config.replay.steps_per_entry,
    }


def _blank_batch(
    scheme: schemes_base.ReplayScheme, signature: stored_unroll.StoredUnroll
) -> stored_unroll.Batch:
    """Returns a batch of arrays with the shapes of a scheme's batches."""
    size = scheme.batch_size
    states: Any = ()
    parts = scheme.steps_per_entry // scheme.unroll_length
    lead = (size, parts) if scheme.uses_sequences else (size,)
    unrolls = tf.nest.map_structure(
        lambda leaf: np.broadcast_to(leaf, (*lead, *leaf.shape)), stored_unroll.blank(signature)
    )
    if scheme.uses_sequences:
        joined = stored_unroll.join(tf.nest.map_structure(tf.constant, unrolls))
        unrolls, states = tf.nest.map_structure(lambda leaf: leaf.numpy(), joined)
    is_online = np.arange(size) < scheme.online_entries
    return stored_unroll.unweighted(unrolls, is_online)._replace(stored_states=states)


def measure(program: bytes) -> Cost:
    """Returns the cost of an HLO module, serialised before its optimisation."""
    module = _Module(hlo_pb2.HloModuleProto.FromString(program))
    shape = module.proto.host_program_shape
    passed = sum(map(_num_bytes, (*shape.parameters, shape.result)))
    flops, moved = module.cost(module.proto.entry_computation_id)
    return Cost(flops, moved + passed)


class _Module:
    """Computations of an HLO module by their identifiers."""

    def __init__(self, proto: hlo_pb2.HloModuleProto):
        self.proto = proto
        self._computations = {each.id: each for each in proto.computations}
        self._instructions = {
            each.id: each for computation in proto.computations for each in computation.instructions
        }

    def cost(self, computation_id: int) -> tuple[int, int]:
        """Returns operations and moved bytes of the instructions that the result depends on."""
        costs = [self._cost_of(instruction) for instruction in self._needed(computation_id)]
        return sum(flops for flops, _ in costs), sum(moved for _, moved in costs)

    def _needed(self, computation_id: int) -> list[hlo_pb2.HloInstructionProto]:
        found: dict[int, hlo_pb2.HloInstructionProto] = {}
        pending = [self._computations[computation_id].root_id]
        while pending:
            number = pending.pop()
            if number not in found:
                found[number] = self._instructions[number]
                pending.extend(found[number].operand_ids)
        return list(found.values())

    def _cost_of(self, instruction: hlo_pb2.HloInstructionProto) -> tuple[int, int]:
        called = instruction.called_computation_ids
        if instruction.opcode == "while":
            flops, moved = self.cost(called[0])
            count = self._trip_count(instruction)
            return count * flops, count * moved
        if instruction.opcode == "conditional":
            return max(map(self.cost, called))
        if instruction.opcode == "call":
            return self.cost(called[0])
        if instruction.opcode not in _MEMORY_BOUNDS:
            return 0, 0
        operands = [self._instructions[number].shape for number in instruction.operand_ids]
        moved = sum(map(_num_bytes, (*operands, instruction.shape)))
        if instruction.opcode == "dot":
            return _dot_flops(instruction, operands[0]), moved
        if instruction.opcode == "convolution":
            return _convolution_flops(instruction, *operands), moved
        return 0, moved

    def _trip_count(self, loop: hlo_pb2.HloInstructionProto) -> int:
        """Returns how often a loop runs that counts from 0 up to a limit; 1 for other loops."""
        condition = self._needed(loop.called_computation_ids[1])
        for call in [each for each in condition if each.opcode == "call"]:
            condition += self._needed(call.called_computation_ids[0])
        limits = [
            self._limit(loop, self._instructions[compare.operand_ids[1]])
            for compare in condition
            if compare.opcode == "compare" and compare.comparison_direction == "LT"
        ]
        return min(filter(None, limits), default=1)

    def _limit(
        self, loop: hlo_pb2.HloInstructionProto, limit: hlo_pb2.HloInstructionProto
    ) -> int | None:
        """Returns the limit of a loop's counter; None if it is no constant of the program.

        A limit that is no constant of the condition is an initial value of the loop. For the loop
        of a gradient, this is the last counter of the forward loop.
        """
        start = self._instructions[loop.operand_ids[0]]
        if limit.opcode == "get-tuple-element" and start.opcode == "tuple":
            limit = self._instructions[start.operand_ids[limit.tuple_index]]
            while limit.opcode == "get-tuple-element":
                source = self._instructions[limit.operand_ids[0]]
                if source.opcode != "tuple":
                    return self._trip_count(source) if source.opcode == "while" else None
                limit = self._instructions[source.operand_ids[limit.tuple_index]]
        return sum(limit.literal.s32s) or None


def _dot_flops(dot: hlo_pb2.HloInstructionProto, left: xla_data_pb2.ShapeProto) -> int:
    contracted = dot.dot_dimension_numbers.lhs_contracting_dimensions
    return 2 * math.prod([*dot.shape.dimensions, *(left.dimensions[axis] for axis in contracted)])


def _convolution_flops(
    convolution: hlo_pb2.HloInstructionProto,
    image: xla_data_pb2.ShapeProto,
    kernel: xla_data_pb2.ShapeProto,
) -> int:
    axes, result = convolution.convolution_dimension_numbers, convolution.shape.dimensions
    products = math.prod(
        _num_pairs(image.dimensions[own], result[given], window)
        for own, given, window in zip(
            axes.input_spatial_dimensions,
            axes.output_spatial_dimensions,
            convolution.window.dimensions,
            strict=True,
        )
    )
    channels = kernel.dimensions[axes.kernel_input_feature_dimension]
    maps = result[axes.output_batch_dimension] * result[axes.output_feature_dimension]
    return 2 * products * channels * maps


def _num_pairs(image: int, result: int, window: xla_data_pb2.WindowDimension) -> int:
    """Returns the number of products of image and kernel along one axis."""
    places = (
        window.stride * np.arange(result)[:, None]
        + window.window_dilation * np.arange(window.size)
        - window.padding_low
    )
    is_inside = (places >= 0) & (places <= (image - 1) * window.base_dilation)
    return int(np.sum(is_inside & (places % window.base_dilation == 0)))


def _num_bytes(shape: xla_data_pb2.ShapeProto) -> int:
    name = xla_data_pb2.PrimitiveType.Name(shape.element_type)
    if name == "TUPLE":
        return sum(map(_num_bytes, shape.tuple_shapes))
    size = _BYTES.get(name) or int(name.lstrip("BFSU")) // 8  # BF16, F32, S64 or U8
    return size * math.prod(shape.dimensions)
