"""Script without access to this package: repeats steps with exported policies.

For each directory of the command line it reads `steps.npz` and writes `actions.npz`.
"""

import sys

BLOCKED = ("laser_tf", "launch", "reverb", "tf_agents", "tensorflow_probability", "gym", "tree")


class _Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ImportError(f"{name} is blocked")


def _nested(named):
    """Returns the observation with the parts "observation" or "observation.key.key"."""
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
        by_function, by_signature = [], []
        batch_size = len(data["reward"][0])
        state = policy.initial_state(batch_size)
        flat = policy.signatures["initial_state"](batch_size=tf.constant(batch_size))
        for t in range(len(data["reward"])):
            step = {name: tf.constant(values[t]) for name, values in data.items()}
            numbers = [step.pop(name) for name in ("reward", "discount", "is_first")]
            action, state = policy.greedy(_nested(step), *numbers, state)
            by_function.append(action.numpy())
            named = {name.replace(".", "_"): leaf for name, leaf in step.items()}
            named |= dict(zip(("reward", "discount", "is_first"), numbers, strict=True))
            flat = policy.signatures["greedy"](**named, **flat)
            by_signature.append(flat.pop("action").numpy())
        np.savez(folder + "/actions.npz", function=by_function, signature=by_signature)
    assert not any(name.split(".")[0] in BLOCKED for name in sys.modules)
