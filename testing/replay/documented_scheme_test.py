"""The replay scheme of docs/extending.md, as a reader would add it."""

import pathlib
import re
import sys
import tempfile
import types
from unittest import mock

from absl.testing import absltest

from laser_tf.replay.schemes import registry
from testing import fakes, messages, pages, runs


def _example() -> str:
    """Returns the module that the section shows."""
    section = pages.text("docs/extending.md").split("## A replay scheme")[1].split("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.S)
    return code


class DocumentedSchemeTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        name = "laser_tf.replay.schemes.newest"
        module = types.ModuleType(name)
        self.enter_context(mock.patch.dict(sys.modules, {name: module}))
        exec(compile(_example(), "newest.py", "exec"), module.__dict__)
        self.enter_context(mock.patch.dict(registry._SCHEMES, {"newest": "newest:Newest"}))

    def test_agent_learns_from_the_scheme(self):
        config = fakes.catch_config(
            replay={"scheme": "newest", "max_replays": 3}, run={"env_frames": 1_600}
        )
        with tempfile.TemporaryDirectory() as folder:
            run = runs.train(config, pathlib.Path(folder) / "run")
        self.assertTrue(run.finished)
        self.assertGreater(int(run.counters.learner_updates.numpy()), 10)

    def test_bad_value_is_rejected(self):
        with messages.raises(ValueError, "max_replays", 2, 3):
            fakes.catch_config(replay={"scheme": "newest", "max_replays": 2})

    def test_key_of_another_scheme_is_rejected(self):
        with messages.raises(ValueError, "max_replays", "mixed", "newest"):
            fakes.catch_config(replay={"max_replays": 2})


if __name__ == "__main__":
    absltest.main()
