"""Training and evaluation from Python, in the process of the test."""

import dataclasses
import json
import logging
import os
import random
import signal
import subprocess
import sys
import threading
from unittest import mock

import numpy as np
import psutil
import pytest
from absl.testing import absltest, parameterized

import laser_tf
from laser_tf import errors, user_code
from laser_tf.monitoring import progress
from laser_tf.workdir import run_directory
from testing import fakes, folders, messages
from testing.environments import small_environments

# Locks a file, or fails if another process has locked it.
_LOCK_FILE = (
    "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
)

_THREAD_LOCK, _DATA = threading.Lock(), bytes(2_000_000)  # In a lambda, pickled by value.


def _process_state() -> dict[str, object]:
    """Returns what training must leave as it was."""
    for thread in threading.enumerate():
        if thread.name == "batches":  # It ends within its polling period.
            thread.join(timeout=10.0)
    ports = psutil.Process().net_connections("tcp")
    return {
        "stderr": sys.stderr,
        "descriptor 2": os.fstat(2).st_ino,
        "handlers": list(logging.getLogger().handlers),
        "signals": [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)],
        "threads": set(threading.enumerate()),
        "ports": {port.laddr.port for port in ports if port.status == psutil.CONN_LISTEN},
        "children": {child.pid for child in psutil.Process().children(recursive=True)},
    }


def _train(*arguments, **options):
    return laser_tf.train(*arguments, progress=False, **options)


def _gymnasium_config(**environment):
    overrides = {
        "run.env_frames": 600,
        "run.evaluation_episodes": 2,
        "environment.num_workers": 1,
        **{f"environment.{key}": value for key, value in environment.items()},
    }
    return laser_tf.load_config("laser:gymnasium", overrides)


class TrainTest(folders.FolderTest):
    def test_second_run_in_a_thread_and_everything_is_released(self):
        config = fakes.catch_config()
        _train(config, self._workdir)  # TensorFlow keeps its threads.
        before = _process_state()
        results = []
        thread = threading.Thread(
            target=lambda: results.append(_train(config, self._workdir.with_name("second")))
        )
        thread.start()
        thread.join()
        self.assertEqual(_process_state(), before)
        random.seed(5)
        np.random.seed(5)
        expected = random.random(), np.random.random()
        random.seed(5)
        np.random.seed(5)
        (run,) = results
        self.assertTrue(run.finished)
        self.assertGreaterEqual(run.env_frames, 2_000)
        self.assertEqual(run.evaluation.episodes, 4)
        written = json.loads((run.workdir / "evaluation.json").read_text())
        self.assertEqual(run.evaluation.mean_return, written["mean_return"])
        self.assertTrue((run.workdir / "native.log").exists())
        subprocess.run([sys.executable, "-c", _LOCK_FILE, run.workdir / "lock"], check=True)
        # The same call reads the evaluation.
        self.assertEqual(_train(config, run.workdir), run)
        evaluation = laser_tf.evaluate(run.workdir, episodes=3, greedy=True, progress=False)
        self.assertEqual(evaluation.summary["protocol"]["action_selection"], "greedy")
        laser_tf.load_policy(run.workdir)
        self.assertEqual((random.random(), np.random.random()), expected)

    def test_run_that_a_callback_stops_is_evaluated_and_changed(self):
        self.enter_context(mock.patch.dict(os.environ, HOME=str(self._workdir.parent)))
        stop = laser_tf.callbacks.StopAfter(seconds=1e-3)
        run = _train(fakes.catch_config(), "~/run", callbacks=[stop])
        self.assertEqual(run.workdir, self._workdir)
        self.assertFalse(run.finished)
        self.assertEqual(run.evaluation.episodes, 4)
        change = {"learner.learning_rate": 1e-5}
        _train(fakes.catch_config(), "~/run", callbacks=[stop], overrides=change)
        values = run_directory.read_config(self._workdir)
        self.assertEqual(values["learner"]["learning_rate"], 1e-5)

    def test_port_warning_is_shown_without_log_handlers(self):
        root = logging.getLogger()
        before, root.handlers = root.handlers, []
        self.addCleanup(setattr, root, "handlers", before)
        with mock.patch.object(logging.StreamHandler, "emit") as emit:
            _train(fakes.catch_config(run={"evaluation_episodes": 0}), self._workdir)
        self.assertEmpty(root.handlers)
        (shown,) = [call.args[0].getMessage() for call in emit.call_args_list]
        self.assertIn("docs/security.md", shown)

    @pytest.mark.long
    def test_interrupted_run_is_saved_and_resumes(self):
        rejected = []

        def interrupt(_, shown):
            if shown.env_frames:
                try:
                    _train(config, self._workdir.with_name("second"))
                except errors.UserError as error:  # Only one run at a time.
                    rejected.append(error)
                signal.raise_signal(signal.SIGINT)

        config = fakes.catch_config(run={"env_frames": 10_000, "evaluation_episodes": 0})
        before = _process_state()
        with mock.patch.object(progress.ProgressDisplay, "update", interrupt):
            with self.assertRaises(KeyboardInterrupt):
                _train(config, self._workdir)
        after = _process_state()
        for name in ("stderr", "descriptor 2", "handlers", "signals", "ports"):
            self.assertEqual(after[name], before[name], name)
        self.assertLen(rejected, 1)
        self.assertTrue(run_directory.has_checkpoint(self._workdir))
        with self.assertLogs(level="INFO") as logs:
            run = _train(config, self._workdir)
        self.assertTrue(any("Resuming" in line for line in logs.output))
        self.assertTrue(run.finished)
        self.assertIsNone(run.evaluation)

    def test_function_creates_the_environments_everywhere(self):
        # Pickled by value, so that workers do not import this module and TensorFlow.
        def make_timed(ends, seed):
            return small_environments.Timed(ends)

        config = _gymnasium_config(arguments="ends=4")
        run = _train(config, self._workdir, environment=make_timed)
        self.assertEqual(run.evaluation.summary["task"], "make_timed")
        self.assertEqual(run.evaluation.mean_return, 4.0)
        # Other code must not run because of a file.
        with messages.raises(user_code.UntrustedError, "--trust_config"):
            laser_tf.evaluate(self._workdir)
        with messages.raises(user_code.UntrustedError, "--trust_config"):
            laser_tf.evaluate(self._workdir, environment_changes={"task": "make_timed"})
        with messages.raises(run_directory.WorkdirError, "environment.task", "make_timed"):
            _train(_gymnasium_config(), self._workdir)
        self.assertEqual(_train(config, self._workdir, environment=make_timed), run)
        policy = laser_tf.load_policy(self._workdir, trust_config=True)
        action, _ = policy.act(np.zeros(3), policy.initial_state())
        self.assertTrue(small_environments.Timed.action_space.contains(action))

    @parameterized.named_parameters(
        ("no function", "laser:gymnasium", 3, "environment", "int"),
        ("other suite", "laser:catch", dict, "environment.suite", "catch", "gymnasium"),
        ("unpicklable", "laser:gymnasium", lambda: _THREAD_LOCK, "lambda", "lock"),
        ("too large", "laser:gymnasium", lambda: _DATA, "lambda"),
        ("no environment", "laser:gymnasium", lambda: 3, "lambda", "int"),
    )
    def test_unusable_environment_is_rejected(self, name, environment, *named):
        with messages.raises(errors.ConfigError, *named):
            _train(laser_tf.load_config(name), self._workdir, environment=environment)
        self.assertFalse(self._workdir.exists())

    def test_unusable_arguments_are_rejected(self):
        config = fakes.catch_config()
        fleet = dataclasses.replace(config, cluster=dataclasses.replace(config.cluster, actors=2))
        for given, named in (("laser:catch", "load_config"), (fleet, "cluster.actors")):
            with messages.raises(errors.ConfigError, named):
                _train(given, self._workdir)
        for callbacks in (None, laser_tf.callbacks.KeepBest(), [laser_tf.callbacks.KeepBest]):
            with messages.raises(errors.ConfigError, "callbacks", callbacks):
                _train(config, self._workdir, callbacks=callbacks)
        change = {"learner.learning_rate": 1e-4}
        with messages.raises(errors.ConfigError, "--override", self._workdir, *change):
            _train(config, self._workdir, overrides=change)
        with self.assertRaises(TypeError):
            _train(config, None)
        with messages.raises(errors.ConfigError, "workdir", "''"):
            _train(config, "")
        with messages.raises(errors.ConfigError, "--override", "run.seed"):  # Not in use.
            _train(config, self._workdir, overrides={"run.seed": 3})
        self.assertFalse(self._workdir.exists())
        with messages.raises(run_directory.WorkdirError, self._workdir):
            laser_tf.evaluate(self._workdir)
        with messages.raises(errors.UserError, self._workdir):
            laser_tf.load_policy(self._workdir)

    def test_override_that_the_optimizer_ignores_is_rejected(self):
        config = fakes.r2d2_catch_config()
        self._workdir.mkdir()
        content = {"config": dataclasses.asdict(config)}
        (self._workdir / "config.json").write_text(json.dumps(content))
        key = "learner.rmsprop_epsilon"
        with messages.raises(errors.ConfigError, key, "adam", 0.2):
            _train(config, self._workdir, overrides={key: 0.2})


if __name__ == "__main__":
    absltest.main()
