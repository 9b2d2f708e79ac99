"""deploy/slurm/train.sbatch: syntax, options of Slurm and Ray, and rejected arguments."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

from absl.testing import absltest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "slurm" / "train.sbatch"


class SlurmTest(absltest.TestCase):
    def test_ray_accepts_the_options(self):
        from ray.scripts import scripts, symmetric_run

        command = re.search(r"ray symmetric-run (.*?) -- ", SCRIPT.read_text(), re.S)[1]
        text = command.replace("\\\n", "").replace("$address", "10.1.2.3:6379")
        words = shlex.split(re.sub(r"\$SLURM_\w+", "3", text))
        context = symmetric_run.symmetric_run.make_context("x", [*words], resilient_parsing=True)
        self.assertEqual(context.params["address"], "10.1.2.3:6379")
        self.assertEqual(context.params["min_nodes"], 3)
        start_words = symmetric_run.curate_and_validate_ray_start_args(words)
        self.assertEqual(scripts.start.make_context("x", start_words).params["num_cpus"], 3)

    def test_missing_workdir_is_rejected(self):
        done = subprocess.run(["bash", str(SCRIPT)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertLen(done.stderr.splitlines(), 1)
        self.assertIn("--workdir", done.stderr)

    def test_signal_comes_early_enough_to_save(self):
        options = dict(re.findall(r"^#SBATCH --([a-z-]+)=?(\S*)$", SCRIPT.read_text(), re.M))
        seconds = re.fullmatch(r"B:USR1@(\d+)", options["signal"])[1]  # B: to the script alone
        self.assertGreaterEqual(int(seconds), 3 * 180)  # to end actors, learner and replay
        self.assertEqual(options["ntasks-per-node"], "1")
        self.assertContainsSubset({"exclusive", "requeue"}, options)

    def test_shellcheck_finds_nothing(self):
        path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
        program = shutil.which("shellcheck", path=path)
        done = subprocess.run([program, str(SCRIPT)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    absltest.main()
