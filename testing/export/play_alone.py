"""Run as a script where this package cannot be imported: replays steps with exported policies.

For each folder of the command line it reads `steps.npz` and writes `actions.npz`.
"""

import sys

BLOCKED = ("laser_tf", "launch", "reverb", "tf_agents", "tensorflow_probability", "gym", "tree")


class _Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ImportError(f"{name} is not there")


def _nested(named):
    """The observation whose parts are named "observation", or "observation.key.key"."""
    nest = {}
    for name, leaf in named.items():
        inner, parts = nest, name.split(".")
        for part in parts[:-1]:
            inner = inner.setdefault(part, {})
        inner[parts[-1]] = leaf
    return nest["observation"]


if __name__ == "__main__":
    sys.meta_path.insert(0, _Blocker())

    import numpy as np
    import tensorflow as tf

    for folder in sys.argv[1:]:
        policy = tf.saved_model.load(folder + "/policy")
        data = dict(np.load(folder + "/steps.npz"))
        names = [name for name in data if name.startswith("observation")]
        by_function, by_signature = [], []
        state = policy.initial_state(len(data["reward"][0]))
        flat = policy.signatures["initial_state"](batch_size=tf.constant(len(data["reward"][0])))
        for t in range(len(data["reward"])):
            row = {name: tf.constant(values[t]) for name, values in data.items()}
            seen = {name: row.pop(name) for name in names}
            numbers = row["reward"], row["discount"], row["is_first"]
            action, state = policy.greedy(_nested(seen), *numbers, state)
            by_function.append(action.numpy())
            row |= {name.replace(".", "_"): leaf for name, leaf in seen.items()}
            flat = policy.signatures["greedy"](**row, **flat)
            by_signature.append(flat.pop("action").numpy())
        np.savez(folder + "/actions.npz", function=by_function, signature=by_signature)
    assert not any(name.split(".")[0] in BLOCKED for name in sys.modules)
