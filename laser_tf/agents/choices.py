"""The networks and reward clips that agents are configured by, without TensorFlow.

The keys of `networks.torsos.TORSOS`, `networks.cores.CORES` and `ops.reward_clipping.REWARD_CLIPS`.
"""

TORSOS = ("shallow", "deep", "dqn", "minatar", "flat")
CORES = ("none", "lstm", "preco_lstm")  # "none": feed-forward
REWARD_CLIPS = ("none", "unit", "optimistic_asymmetric")
