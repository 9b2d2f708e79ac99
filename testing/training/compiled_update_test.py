"""The update as one XLA program, and its bfloat16 results next to those of float32."""

import os
import pathlib
import re
import tempfile
from concurrent import futures
from typing import Any

import numpy as np
import pytest
from absl.testing import absltest, parameterized

from testing import forks
from testing.training import joint_updates

_CONVOLUTION = {"torso": "minatar"}
_LASER = joint_updates.CASES["laser"].agent | _CONVOLUTION
_ADAM = {"optimizer": "adam"}
_CASES = {
    "laser_with_popart": joint_updates.Case(_LASER),
    "impala": joint_updates.Case(
        {"name": "laser", "trust_region": "none"} | _CONVOLUTION, {"gradient_clip": 40.0}
    ),
    "acer_with_adam": joint_updates.Case({"name": "acer", "mlp_units": (8,)} | _CONVOLUTION, _ADAM),
    "r2d2": joint_updates.Case(joint_updates.CASES["r2d2"].agent | _CONVOLUTION, _ADAM),
    "reactor": joint_updates.Case(joint_updates.CASES["reactor"].agent | _CONVOLUTION, _ADAM),
}
_UPDATES = 3
# bfloat16 rounds to 0.4%. Relative to the largest loss term, priority or the gradient norm.
_TOLERANCE = 0.02


def _write_programs(folder: str) -> None:
    """Lets XLA write each program that it compiles, and compile fast but slow programs."""
    flags = ("dump_to=" + folder, "backend_optimization_level=0", "llvm_disable_expensive_passes")
    os.environ["XLA_FLAGS"] = " ".join(f"--xla_{flag}" for flag in flags)


def _programs(folder: str) -> set[pathlib.Path]:
    return set(pathlib.Path(folder).glob("*before_optimizations.txt"))


def _update(name: str, dtype: str, folder: str) -> dict[str, Any]:
    """Takes updates with different batches of equal shapes, all of them compiled.

    Returns the results of the first update, the number of updates, the compiled programs, and the
    types of the operations outside of the compiled function.
    """
    case = _CASES[name]
    made = joint_updates.make(case, dtype=dtype, jit=True)
    before = _programs(folder)
    results = []
    for i in range(_UPDATES):
        priorities = made.update(joint_updates.batch(case, made, i)).priorities
        results.append((made.metrics(), priorities))
    outer = made._update_and_measure._concrete.graph
    (compiled,) = (op for op in outer.get_operations() if "_XlaMustCompile" in op.node_def.attr)
    return {
        "metrics": results[0][0],
        "priorities": results[0][1],
        "updates": int(made.counters.learner_updates.numpy()),
        "programs": [path.read_text() for path in _programs(folder) - before],
        "must_compile": compiled.node_def.attr["_XlaMustCompile"].b,
        "outside": [op.type for op in outer.get_operations() if op is not compiled],
    }


class CompiledUpdateTest(parameterized.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Another process, because XLA reads its flags once.
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.process = cls.enterClassContext(
            futures.ProcessPoolExecutor(
                1, forks.context(), initializer=_write_programs, initargs=(cls.folder,)
            )
        )

    @parameterized.parameters("laser_with_popart", "acer_with_adam")
    def test_one_program_agrees_in_both_dtypes_for(self, name):
        self._check(name)

    @parameterized.parameters("impala", "r2d2", "reactor")
    @pytest.mark.long
    def test_one_program_agrees_in_both_dtypes_also_for(self, name):
        self._check(name)

    def _check(self, name):
        exact, rounded = (
            self.process.submit(_update, name, dtype, self.folder).result()
            for dtype in ("float32", "bfloat16")
        )
        for results in (exact, rounded):
            self.assertEqual(results["updates"], _UPDATES)
            (program,) = results["programs"]
            is_rounded = re.search(r"= bf16\S+ convolution\(", program) is not None
            self.assertEqual(is_rounded, results is rounded)
            self.assertTrue(results["must_compile"])
            # One function of Python gives the batch, another takes the results. XLA rejects
            # functions of Python in the program. Its metrics are added to their sums.
            self.assertEqual(results["outside"].count("PyFunc"), 2)
            passing = {"PyFunc", "EnsureShape", "Placeholder", "Const", "Identity", "NoOp"}
            adding = {"Pack", "Cast", "IsNan", "LogicalNot", "SelectV2", "AssignAddVariableOp"}
            self.assertContainsSubset(results["outside"], passing | adding)
        losses, priorities, norms = zip(*map(_compared, (exact, rounded)), strict=True)
        for first, second in (losses, priorities, norms):
            atol = _TOLERANCE * np.abs(first).max()
            np.testing.assert_allclose(second, first, rtol=0, atol=atol)


def _compared(results: dict[str, Any]) -> tuple[list[float], np.ndarray, float]:
    """Returns loss terms, priorities and the gradient norm of an update."""
    metrics = results["metrics"]
    losses = [metrics[name] for name in sorted(metrics) if name.startswith("loss/")]
    return losses, results["priorities"], metrics["learner/gradient_norm"]


if __name__ == "__main__":
    absltest.main()
