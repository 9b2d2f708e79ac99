"""Directories of sweeps with known contents, as launch.sweep writes them."""

import json
import pathlib
from collections.abc import Mapping, Sequence

Episodes = Mapping[str, Sequence[tuple[int, float]]]  # task -> (env frames, return)


def write(
    folder: pathlib.Path,
    agents: Mapping[str, Episodes],
    *,
    label: str = "laser",
    seed: int = 1,
    suite: str = "tmaze",
    task: str = "breakout",
    env_frames: int = 20,
) -> pathlib.Path:
    """Writes `sweep.json` and the logs of members; a member without episodes has no directory."""
    folder.mkdir(parents=True)
    config = {
        "environment": {"suite": suite, "task": task},
        "run": {"env_frames": env_frames},
    }
    hyperparameters = {
        name: {"learner.learning_rate": 1e-4 * (k + 1), "agent.entropy_cost": 0.01}
        for k, name in enumerate(agents)
    }
    content = {"label": label, "seed_index": seed, "members": hyperparameters, "config": config}
    (folder / "sweep.json").write_text(json.dumps({**content, "versions": {}}))
    for name, tasks in agents.items():
        rows = sorted((frames, task, value) for task in tasks for frames, value in tasks[task])
        if rows:
            (folder / name).mkdir()
            lines = [f"{frames},{task},{value},9\n" for frames, task, value in rows]
            text = "env_frames,task,return,length\n" + "".join(lines)
            (folder / name / "episodes.csv").write_text(text)
    return folder


def forget(path: pathlib.Path, key: str) -> None:
    """Removes "section.key" from a `config.json` or `sweep.json`, as in an earlier version."""
    content = json.loads(path.read_text())
    section, _, name = key.partition(".")
    del content["config"][section][name]
    path.write_text(json.dumps(content))


def write_comparison(folder: pathlib.Path, **settings) -> None:
    """Two seeds of three tasks with two agents, budget 20; in buckets of 10 env frames:

    seed 1      member_00           member_01           medians over tasks    best
      bucket 0  x 2, y 4, z 100    x 0, y 8, z -50    4 and 0               4
      bucket 1  x 10, y 0, z 100   x 4, y 6, z -50    10 and 4              10
    seed 2
      bucket 0  x 6, y 8, z 4      x 1, y 1, z 1      6 and 1               6
      bucket 1  x 0, y 0, z 0      x 2, y 2, z 20     0 and 2               2
    """
    values = {
        1: {"member_00": ("x 1 3 10", "y 4 4 0", "z 100 100 100"),
            "member_01": ("x 0 0 4", "y 8 8 6", "z -50 -50 -50")},
        2: {"member_00": ("x 6 6 0", "y 8 8 0", "z 4 4 0"),
            "member_01": ("x 1 1 2", "y 1 1 2", "z 1 1 20")},
    }  # fmt: skip
    for seed, agents in values.items():
        for k, task in enumerate("xyz"):
            of_task = {
                name: {task: [*zip((0, 9, 10), map(float, rows[k].split()[1:]), strict=True)]}
                for name, rows in agents.items()
            }
            path = folder / f"seed_{seed}" / task
            write(path, of_task, seed=seed, task=task, **settings)
