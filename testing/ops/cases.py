"""Cases of the ops: random inputs, references, settings, and entries that an op must not read."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf

from laser_tf.ops import (
    distributional_retrace,
    importance_truncation,
    leave_one_out,
    n_step,
    pixel_control,
    policy_gradient,
    retrace,
    vtrace,
)
from testing import numpy_reference, reactor_reference

T, B, A, N, GRID = 9, 7, 4, 9, (3, 2)
GAMMA = 0.9
Inputs: TypeAlias = dict[str, np.ndarray]
BETA_CLIPS = (1.0, 2.0, 10.0, math.inf)


class Case(NamedTuple):
    """An op with arguments by name; time is axis 0 of all arrays except `support`."""

    op: Callable[..., Any]
    inputs: Callable[[int], Inputs]  # random inputs of a seed
    unread: Callable[[Inputs], Inputs]  # masks by argument
    # Its second output is the receiver's gradient. None: the op's own test has a reference.
    reference: Callable[..., Any] | None = None
    settings: tuple[dict[str, Any], ...] = ({},)
    receiver: str = ""  # the only argument that receives a gradient; "" for targets


def episodes() -> tuple[np.ndarray, np.ndarray]:
    """Returns discounts and transitions [T, B] with no, true and truncated ends of episodes.

    If x_t ends an episode, then step t is not a transition. The discount of step t - 1 is 0, unless
    a time limit ends the episode.
    """
    discounts, is_transition = np.full([T, B], GAMMA, np.float32), np.ones([T, B], bool)
    true_ends = {1: (3,), 3: (0, 2), 4: (T - 1,), 6: (T,)}
    time_limits = {2: (4,), 3: (5, 6), 4: (1,), 5: (0, T - 1)}
    for ends, discount in ((true_ends, 0.0), (time_limits, GAMMA)):
        for b, steps in ends.items():
            for t in steps:
                if t > 0:
                    discounts[t - 1, b] = discount
                if t < T:
                    is_transition[t, b] = False
    discounts[4, 6] = 0.0  # A lost life ends the return, but not the episode.
    return discounts, is_transition


def _inputs(seed: int, **shapes: tuple[int, ...]) -> Inputs:
    """Returns rewards, discounts, transitions and normal arrays of the given shapes."""
    rng = np.random.default_rng(seed)
    discounts, is_transition = episodes()
    shapes = {"rewards": (T, B)} | shapes
    arrays = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return arrays | {"discounts": discounts, "is_transition": is_transition}


def _log_rhos(seed: int) -> np.ndarray:
    """Returns log ratios of ratios from 0.1 to 8, below and above all clips."""
    rng = np.random.default_rng(seed)
    return rng.uniform(np.log(0.1), np.log(8.0), [T, B]).astype(np.float32)


def _probabilities(seed: int, *shape: int) -> np.ndarray:
    logits = 2 * np.random.default_rng(seed).normal(size=shape)
    return numpy_reference.softmax(logits).astype(np.float32)


def vtrace_inputs(seed: int = 0) -> Inputs:
    """Returns inputs with 25% untrusted transitions, an untrusted and a trusted column."""
    inputs = _inputs(seed, values=(T + 1, B)) | {"log_rhos": _log_rhos(seed)}
    trusted = inputs.pop("is_transition")
    trusted &= np.random.default_rng(seed).uniform(size=[T, B]) > 0.25
    trusted[:, -1], trusted[:, 0] = False, True
    return inputs | {"trusted": trusted}


def retrace_inputs(seed: int = 0) -> Inputs:
    inputs = _inputs(seed, values=(T + 1, B), q_taken=(T, B))
    return inputs | {"traces": np.minimum(1.2, np.exp(_log_rhos(seed)))}


def double_q_inputs(seed: int = 0) -> Inputs:
    """Returns inputs with rescaled values and rewards of about a hundred."""
    inputs = _inputs(seed, q_online=(T + 1, B, A), q_target=(T + 1, B, A))
    scales = {"q_online": 10, "q_target": 10, "rewards": 100}
    return inputs | {name: scale * inputs[name] for name, scale in scales.items()}


def distributional_inputs(
    seed: int = 0, support: np.ndarray | None = None, inside: bool = False
) -> tuple[Inputs, Inputs]:
    """Returns arguments of the op and of its reference, which has masses of all actions.

    Returns are inside and outside of the support, or only `inside`.
    """
    support = np.linspace(-4.0, 4.0, N).astype(np.float32) if support is None else support
    common = _inputs(seed) | {"support": support}
    pi, mu = (_probabilities(seed + i, T + 1, B, A) for i in (1, 2))
    q = _probabilities(seed + 3, T + 1, B, A, len(support))
    if inside:
        third = len(support) // 3
        q[..., :third], q[..., -third:] = 0.0, 0.0
        q /= q.sum(-1, keepdims=True)
    actions = np.random.default_rng(seed).integers(A, size=[T, B])
    pi_taken, mu_taken = (
        np.take_along_axis(p[:-1], actions[..., None], axis=-1)[..., 0] for p in (pi, mu)
    )
    common["traces"] = np.minimum(1.0, pi_taken / mu_taken)
    q_taken = np.take_along_axis(q[:-1], actions[..., None, None], axis=2)[:, :, 0]
    values = np.einsum("tba,tban->tbn", pi, q).astype(np.float32)
    arguments = common | {"q_taken": q_taken, "values": values}
    return arguments, common | {"q": q, "pi": pi, "actions": actions}


def leave_one_out_inputs(seed: int = 0) -> Inputs:
    """Returns inputs with ratios and 1 / mu below and above the clips, and masked steps."""
    rng = np.random.default_rng(seed)
    inputs = _inputs(seed, q_values=(T, B, A), returns=(T, B))
    return {
        "pi": _probabilities(seed + 1, T, B, A),
        "q_values": inputs["q_values"],
        "returns": inputs["returns"],
        "actions": rng.integers(A, size=[T, B]).astype(np.int32),
        "mu": _probabilities(seed + 2, T, B, A),
        "mask": rng.uniform(size=[T, B]) > 0.3,
    }


def _beta_inputs(seed: int) -> Inputs:
    inputs = leave_one_out_inputs(seed)
    mu = inputs.pop("mu")
    mu_taken = np.take_along_axis(mu, inputs["actions"][..., None], axis=-1)[..., 0]
    return inputs | {"mu_taken": mu_taken}


def pixel_control_inputs(seed: int = 0) -> Inputs:
    rng = np.random.default_rng(seed)
    inputs = _inputs(seed, rewards=(T, B, *GRID), q=(T + 1, B, *GRID, A))
    del inputs["discounts"]
    actions = rng.integers(A, size=[T, B]).astype(np.int32)
    return inputs | {"actions": actions, "mask": rng.uniform(size=[T, B]) > 0.3}


def _loss_inputs(*names: str) -> Callable[[int], Inputs]:
    def inputs(seed: int) -> Inputs:
        rng = np.random.default_rng(seed)
        arrays = {name: rng.normal(size=[T, B]).astype(np.float32) for name in names}
        return arrays | {"mask": rng.uniform(size=[T, B]) > 0.3}

    return inputs


def _unread(mask: str, *names: str) -> Callable[[Inputs], Inputs]:
    """Returns the steps where `mask` is false, for each of the arguments `names`."""
    return lambda inputs: dict.fromkeys(names, ~inputs[mask])


def _unread_retrace(inputs: Inputs) -> Inputs:
    """Adds step 0 of Q-values and traces."""
    masked = _unread("is_transition", "rewards", "discounts", "q_taken", "traces")(inputs)
    first = np.arange(T)[:, None] == 0
    return masked | {name: masked[name] | first for name in ("q_taken", "traces")}


def _unread_distributional(inputs: Inputs) -> Inputs:
    """Adds values of first steps of episodes, which no return reads."""
    is_first = np.concatenate([np.ones([1, B], bool), ~inputs["is_transition"]])
    return _unread_retrace(inputs) | {"values": is_first}


def _unread_n_step(inputs: Inputs) -> Inputs:
    """Adds values of first steps that have a next step in their episode."""
    masked = ~inputs["is_transition"]
    is_first = np.concatenate([np.ones([1, B], bool), masked])
    unread = is_first & np.concatenate([~masked, np.zeros([1, B], bool)])
    names = ("bootstrap_values", "q_online", "q_target")
    unread = {name: unread for name in names if name in inputs}
    if "q_target" in unread:  # Only the action that the online network selects is read.
        best = np.eye(A, dtype=bool)[inputs["q_online"].argmax(-1)]
        unread["q_target"] = unread["q_target"][..., None] | ~best
    return unread | {"rewards": masked, "discounts": masked}


def _unread_pixel_control(inputs: Inputs) -> Inputs:
    """Masks rewards between episodes, Q-values without a loss and unused bootstrap values."""
    is_transition = inputs["is_transition"]
    has_loss = (is_transition & inputs["mask"])[..., None]
    read = np.eye(A, dtype=bool)[inputs["actions"]] & has_loss
    read = np.concatenate([read, np.broadcast_to(is_transition[-1:, :, None], [1, B, A])])
    shape = inputs["q"].shape
    return {
        "rewards": ~is_transition,
        "q": np.broadcast_to(~read[:, :, None, None], shape),
    }


def _clips(rho_bar: float, c_bar: float, lambda_: float = 1.0) -> dict[str, float]:
    return {"rho_bar": rho_bar, "c_bar": c_bar, "lambda_": lambda_}


CASES = {
    "vtrace": Case(
        vtrace.vtrace,
        vtrace_inputs,
        _unread("trusted", "log_rhos", "rewards", "discounts"),
        numpy_reference.vtrace,
        (
            {},
            _clips(2.5, 1.5),
            _clips(0.6, 1.7),
            _clips(1.4, 0.8, 0.9),
            _clips(np.inf, np.inf),
        ),
    ),
    "retrace": Case(retrace.retrace, retrace_inputs, _unread_retrace, numpy_reference.retrace),
    "n_step_returns": Case(
        n_step.n_step_returns,
        lambda seed: _inputs(seed, bootstrap_values=(T + 1, B)),
        _unread_n_step,
        numpy_reference.n_step_returns,
        tuple({"n": n} for n in (1, 2, 3, T, 3 * T)),
    ),
    "double_q_targets": Case(
        n_step.double_q_targets,
        double_q_inputs,
        _unread_n_step,
        numpy_reference.double_q_targets,
        tuple({"n": n, "rescaling_epsilon": e} for n in (1, 3, 3 * T) for e in (1e-3, 1e-2, None)),
    ),
    "distributional_retrace": Case(
        distributional_retrace.distributional_retrace,
        lambda seed: distributional_inputs(seed)[0],
        _unread_distributional,
    ),
    "truncated_products": Case(
        importance_truncation.truncated_products,
        lambda seed: {
            "log_rhos": _log_rhos(seed),
            **dict(zip(("discounts", "is_transition"), episodes(), strict=True)),
        },
        _unread("is_transition", "log_rhos"),
        numpy_reference.truncated_products,
        tuple({"c": c} for c in (0.5, 2.0, 5.0)),
    ),
    "beta_leave_one_out": Case(
        leave_one_out.beta_leave_one_out,
        _beta_inputs,
        _unread("mask", "pi", "q_values", "returns", "mu_taken", "actions"),
        reactor_reference.beta_leave_one_out,
        tuple({"clip": clip} for clip in BETA_CLIPS),
        receiver="pi",
    ),
    "truncated_importance_sampling": Case(
        leave_one_out.truncated_importance_sampling,
        leave_one_out_inputs,
        _unread("mask", "pi", "q_values", "returns", "mu", "actions"),
        reactor_reference.truncated_importance_sampling,
        tuple({"clip": clip} for clip in BETA_CLIPS),
        receiver="pi",
    ),
    "pixel_control_loss": Case(
        pixel_control.pixel_control_loss,
        pixel_control_inputs,
        _unread_pixel_control,
        numpy_reference.pixel_control_loss,
        tuple({"discount": discount} for discount in (0.0, 0.9, 1.0)),
        receiver="q",
    ),
    "policy_gradient_loss": Case(
        policy_gradient.policy_gradient_loss,
        _loss_inputs("log_probs", "weighted_advantages"),
        _unread("mask", "log_probs", "weighted_advantages"),
        lambda log_probs, weighted_advantages, mask: (
            -(log_probs * weighted_advantages)[mask].sum(),
            -np.where(mask, weighted_advantages, 0.0),
        ),
        receiver="log_probs",
    ),
    "baseline_loss": Case(
        policy_gradient.baseline_loss,
        _loss_inputs("values", "targets"),
        _unread("mask", "values", "targets"),
        numpy_reference.baseline_loss,
        receiver="values",
    ),
    "entropy_loss": Case(
        policy_gradient.entropy_loss,
        _loss_inputs("entropies"),
        _unread("mask", "entropies"),
        lambda entropies, mask: (-entropies[mask].sum(), -1.0 * mask),
        receiver="entropies",
    ),
}


def poisoned(case: Case, inputs: Inputs, poison: float) -> Inputs:
    """Returns a copy of the inputs with a value, or action -1, where the op must not read."""
    result = {name: array.copy() for name, array in inputs.items()}
    for name, mask in case.unread(inputs).items():
        result[name][mask] = -1 if name == "actions" else poison
    return result


def outputs_and_gradients(
    case: Case, inputs: Inputs, setting: dict[str, Any]
) -> tuple[list[tf.Tensor], dict[str, tf.Tensor | None]]:
    """Returns the outputs and the gradients of their sum in all float arguments, by name."""
    # Tensors, because NumPy would warn of inf - inf in masked entries.
    arguments = {name: tf.constant(x) for name, x in inputs.items()}
    floats = {name: x for name, x in arguments.items() if x.dtype == tf.float32}
    with tf.GradientTape() as tape:
        tape.watch(floats)
        outputs = tf.nest.flatten(case.op(**arguments, **setting))
    return outputs, tape.gradient(outputs, floats)
