"""Tests of the choice of devices, without the devices."""

from unittest import mock

import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import joint_batch
from laser_tf.training import learner_config, strategies
from testing import fakes, messages


def _with_devices(**counts: int):
    """A machine with so many GPUs or TPUs."""
    devices = {
        kind: [mock.Mock(device_type=kind)] * count for kind, count in ({"CPU": 1} | counts).items()
    }
    return mock.patch.object(tf.config, "list_physical_devices", lambda kind: devices.get(kind, []))


def _strategy(*devices: str) -> mock.Mock:
    return mock.Mock(num_replicas_in_sync=len(devices), extended=mock.Mock(worker_devices=devices))


def _make(replicas: int, *processes, **overrides):
    config = learner_config.LearnerConfig(num_devices=replicas, **overrides)
    return strategies.make(config, *processes)


class DevicesTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        patched = mock.patch.object(tf.config, "set_visible_devices")
        self._show = patched.start()
        self.addCleanup(patched.stop)
        level = tf.get_logger().level
        self.addCleanup(tf.get_logger().setLevel, level)

    @parameterized.parameters({}, {"GPU": 8}, {"TPU": 8})
    def test_one_learner_needs_no_strategy(self, **devices):
        with _with_devices(**devices):
            self.assertIsNone(_make(1))
            self.assertIsNone(_make(1, ["host:1"], 0))
        self._show.assert_not_called()

    def test_gpus_are_preferred(self):
        with (
            _with_devices(GPU=4),
            mock.patch.object(
                tf.distribute, "MirroredStrategy", lambda devices: _strategy(*devices)
            ),
            self.assertLogs(level="INFO") as logs,
        ):
            made = _make(2)
        self.assertEqual(made.extended.worker_devices, ("GPU:0", "GPU:1"))
        self.assertLen(self._show.call_args.args[0], 2)
        messages.assert_names(logs.output[0], 2, "GPU:0", "GPU:1")

    @parameterized.parameters(([],), (["a:1", "b:1"],))
    def test_more_replicas_than_gpus_are_rejected(self, addresses):
        with _with_devices(GPU=2), messages.raises(ValueError, "learner.num_devices", 3, 2):
            _make(3, addresses, 0)

    def test_replicas_of_several_cpu_processes_are_rejected(self):
        with _with_devices(), messages.raises(ValueError, "learner.num_devices", 2, 1):
            _make(2, ["a:1", "b:1"], 0)

    def test_process_of_several_has_its_index(self):
        with (
            _with_devices(GPU=2),
            mock.patch.object(tf.distribute, "MultiWorkerMirroredStrategy") as made,
        ):
            made.return_value = _strategy("GPU:0", "GPU:1")
            _make(2, ["a:1", "b:2"], 1)
        (resolver,) = made.call_args.args
        self.assertEqual(resolver.cluster_spec().as_dict(), {"worker": ["a:1", "b:2"]})
        self.assertEqual((resolver.task_type, resolver.task_id), ("worker", 1))
        self.assertEqual(resolver.num_accelerators(), {"GPU": 2})

    def test_port_in_use_raises(self):
        error = tf.errors.UnknownError(None, None, "Could not start gRPC server")
        with (
            _with_devices(),
            mock.patch.object(
                tf.distribute, "MultiWorkerMirroredStrategy", mock.Mock(side_effect=error)
            ),
            messages.raises(strategies.LearnersLostError, 1, "a:1, b:2", "gRPC"),
        ):
            _make(1, ["a:1", "b:2"], 1)

    def test_xla_is_rejected_on_cpus_only(self):
        with mock.patch.object(tf.distribute, "MirroredStrategy") as made, _with_devices(GPU=2):
            made.return_value = _strategy("/device:GPU:0", "/device:GPU:1")
            self.assertIs(_make(2, jit_compile="on"), made.return_value)
        with (
            mock.patch.object(tf.distribute, "MultiWorkerMirroredStrategy") as made,
            _with_devices(),
        ):
            made.return_value = _strategy("/job:worker/task:1/device:CPU:0")
            for jit in ("auto", "off"):
                self.assertIs(_make(1, ["a:1", "b:1"], 1, jit_compile=jit), made.return_value)
            with messages.raises(ValueError, "learner.jit_compile", "on"):
                _make(1, ["a:1", "b:1"], 1, jit_compile="on")

    @parameterized.parameters(8, 4)
    def test_replicas_must_be_all_cores_of_a_tpu(self, replicas):
        with (
            _with_devices(TPU=8),
            mock.patch.object(tf.distribute.cluster_resolver, "TPUClusterResolver") as resolver,
            mock.patch.object(tf.config, "experimental_connect_to_cluster"),
            mock.patch.object(tf.tpu.experimental, "initialize_tpu_system") as initialise,
            mock.patch.object(tf.distribute, "TPUStrategy") as made,
        ):
            made.return_value = _strategy(*(f"TPU:{core}" for core in range(8)))
            if replicas == 8:
                self.assertIs(_make(8), made.return_value)
                made.assert_called_once_with(resolver.return_value)
                initialise.assert_called_once_with(resolver.return_value)
            else:
                with messages.raises(ValueError, "learner.num_devices", 4, 8):
                    _make(4)


class RefusalTest(parameterized.TestCase):
    def test_batch_without_equal_shares_is_rejected(self):
        with messages.raises(ValueError, "num_devices", 3, 32):
            fakes.catch_config(learner={"num_devices": 3}, replay={"batch_size": 32})

    def test_errors_of_one_process_are_unchanged(self):
        error = tf.errors.UnavailableError(None, None, "of something else")
        with self.assertRaises(tf.errors.UnavailableError), strategies.convert_errors(None):
            raise error


class JointBatchTest(absltest.TestCase):
    def test_sum_of_one_learner_is_its_value(self):
        nest = {"a": tf.constant([1.0, 2.0]), "b": (tf.constant(3, tf.int64),)}
        self.assertIs(joint_batch.all_reduce_sum(nest), nest)
        self.assertEqual(joint_batch.num_replicas(), 1)

    def test_means_become_numbers(self):
        mean = joint_batch.Mean(tf.constant(6.0), tf.constant(4.0))
        empty = joint_batch.Mean(tf.constant(0.0), tf.constant(0.0))
        values = joint_batch.metric_values({"sum": tf.constant(2.0), "mean": mean, "empty": empty})
        self.assertEqual((values["sum"], values["mean"]), (2.0, 1.5))
        self.assertTrue(tf.math.is_nan(values["empty"]))


if __name__ == "__main__":
    absltest.main()
