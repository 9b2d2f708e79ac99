"""The model card of an exported policy: facts about its run, and the page `README.md`."""

import json
from collections.abc import Mapping
from typing import Any

from laser_tf.workdir import versions

_CALLS = {
    "saved_model": """\
import numpy as np
import tensorflow as tf

policy = tf.saved_model.load(".")  # this directory
step = {{
{step}
}}
state = policy.signatures["initial_state"](batch_size=tf.constant(1))
tensors = {{name: tf.constant(array) for name, array in step.items()}}
state = policy.signatures["greedy"](**tensors, **state)
action = state.pop("action").numpy()[0]
""",
    "tflite": """\
import numpy as np
import tensorflow as tf

greedy = tf.lite.Interpreter("policy.tflite").get_signature_runner()
step = {{
{step}
}}
state = {{
{state}
}}
outputs = greedy(**step, **state)
action = outputs.pop("action")[0]
state = {{name.removeprefix("next_"): array for name, array in outputs.items()}}
""",
    "onnx": """\
import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession("policy.onnx")
step = {{
{step}
}}
state = {{
{state}
}}
names = [output.name for output in session.get_outputs()]
outputs = dict(zip(names, session.run(names, {{**step, **state}}), strict=True))
action = outputs.pop("action")[0]
state = {{name.removeprefix("next_"): array for name, array in outputs.items()}}
""",
}
_NEEDS = {
    "saved_model": "A TensorFlow SavedModel, which needs TensorFlow 2.15 and nothing else",
    "tflite": "A TFLite model of builtin operations, `policy.tflite`",
    "onnx": "An ONNX model of operation set 15, `policy.onnx`",
}


def run_facts(
    config: Mapping[str, Any],
    learner_updates: int,
    evaluation: Mapping[str, Any] | None,
    model_format: str,
) -> dict[str, Any]:
    """Returns the entries of `policy.json` about the run and the format.

    `evaluation` is the content of the run's `evaluation.json`; None without evaluation.
    """
    facts: dict[str, Any] = {
        "format": model_format,
        "learner_updates": learner_updates,
        "versions": {"laser_tf": versions.of_package(), **versions.recorded()},
        "evaluation": evaluation,
        # Without `cluster`, which has addresses, and without the code of a function.
        "config": {
            name: {key: value for key, value in section.items() if key != "pickled_function"}
            for name, section in config.items()
            if name != "cluster"
        },
    }
    if model_format != "saved_model":
        greedy = "inputs and `state_<name>` -> action and `next_state_<name>`: the best action"
        facts["functions"] = {"greedy": greedy}
    return facts


def page(about: Mapping[str, Any]) -> str:
    """Returns `README.md` in Markdown, from the content of `policy.json`."""
    states = [{**entry, "name": f"state_{entry['name']}"} for entry in about["state"]]
    call = _CALLS[about["format"]].format(step=_zeros(about["inputs"]), state=_zeros(states))
    tasks = ", ".join(about["tasks"])
    environment = ", ".join(f"{key} {value}" for key, value in about["environment"].items())
    functions = "\n".join(f"- `{name}`: {text}" for name, text in about["functions"].items())
    return f"""# A policy for {tasks}

{_NEEDS[about["format"]]}. `policy.json` holds the same facts for programs.

| fact | value |
|---|---|
| task | {tasks} ({about["suite"]}) |
| agent | {about["agent"]} |
| env frames of training | {about["trained_env_frames"]:,} |
| learner updates | {about["learner_updates"]:,} |
| evaluation | {_evaluation(about["evaluation"])} |
| environment | {environment} |
| laser_tf | {about["versions"]["laser_tf"]} |

The environment must have the settings of training.

## Call

This program takes the first step of one environment. Replace the zeros by its observation.

```python
{call}```
{_notes(about)}
{_table("Inputs", about["inputs"])}
{_table("State", states)}
{_table("Output", [about["action"]])}

## Functions

{functions}

## Configuration

```json
{json.dumps(about["config"], indent=2)}
```
"""


def _notes(about: Mapping[str, Any]) -> str:
    state = (
        "The batch size is free. The state starts with zeros, and each call returns the next "
        "state. Where `is_first` is true, the state of that environment is reset."
    )
    if about["format"] != "saved_model":
        return f"\n{state}\n"
    return f"""
{state}

The functions `initial_state`, `greedy` and `sample` of the loaded policy take the observation as \
the environment has it, and the state as a dictionary without the prefix `state_`.

`act.load(".")` of `act.py` returns a policy that takes the environment's own observations and \
returns its own actions. `python act.py TASK` runs 10 episodes in an environment of gymnasium. \
With laser_tf, `python -m launch.evaluate --policy=DIRECTORY --video` evaluates the policy.
"""


def _evaluation(evaluation: Mapping[str, Any] | None) -> str:
    if not evaluation:
        return "none"
    protocol = evaluation["protocol"]
    changed = f", {protocol['changed_environment']}" if "changed_environment" in protocol else ""
    return (
        f"mean return {evaluation['mean_return']:.4g}, standard deviation "
        f"{evaluation['standard_deviation']:.3g}, {evaluation['episodes']} episodes, actions "
        f"{protocol['action_selection']}, seed {protocol['seed']}, weights after "
        f"{evaluation['env_frames']:,} env frames" + changed
    )


def _zeros(entries: list[dict[str, Any]]) -> str:
    """Returns lines of Python: the first step of one environment, by the names of its tensors."""
    lines = []
    for entry in entries:
        name, shape = entry["name"], [1, *entry["shape"][1:]]
        is_one = name in ("discount", "is_first") or name.endswith("action_mask")
        function = "ones" if is_one else "zeros"
        lines.append(f'    "{name}": np.{function}({shape}, "{entry["dtype"]}"),')
    return "\n".join(lines)


def _table(title: str, entries: list[dict[str, Any]]) -> str:
    rows = [
        f"| {entry['name']} | {entry['dtype']} [{', '.join(map(str, entry['shape']))}] | "
        + entry["meaning"]
        + (f"; {entry['minimum']} to {entry['maximum']}" if "minimum" in entry else "")
        + " |"
        for entry in entries
    ]
    head = ["", f"## {title}", "", "| name | dtype and shape | meaning |", "|---|---|---|"]
    return "\n".join([*head, *rows])
