"""Run as a script where this package cannot be imported: replays steps with exported policies.

For each folder of the command line it reads `steps.npz` and writes `actions.npz`.
"""

import sys

BLOCKED = ("laser_tf", "launch", "reverb", "tf_agents", "tensorflow_probability", "gym", "tree")


class _Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ImportError(f"{name} is not there")


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
            observation = {name.removeprefix("observation_"): row[name] for name in names}
            if names == ["observation"]:
                observation = row["observation"]
            numbers = row["reward"], row["discount"], row["is_first"]
            action, state = policy.greedy(observation, *numbers, state)
            by_function.append(action.numpy())
            flat = policy.signatures["greedy"](**row, **flat)
            by_signature.append(flat.pop("action").numpy())
        np.savez(folder + "/actions.npz", function=by_function, signature=by_signature)
    assert not any(name.split(".")[0] in BLOCKED for name in sys.modules)
