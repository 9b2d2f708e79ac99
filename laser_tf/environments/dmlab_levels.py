"""The levels of DMLab-30 for training and for testing, and their engine settings."""

# By their names in training. Two have another level for testing: see `level_to_play`.
LEVELS = (
    "rooms_collect_good_objects_train",
    "rooms_exploit_deferred_effects_train",
    "rooms_select_nonmatching_object",
    "rooms_watermaze",
    "rooms_keys_doors_puzzle",
    "language_select_described_object",
    "language_select_located_object",
    "language_execute_random_task",
    "language_answer_quantitative_question",
    "lasertag_one_opponent_small",
    "lasertag_three_opponents_small",
    "lasertag_one_opponent_large",
    "lasertag_three_opponents_large",
    "natlab_fixed_large_map",
    "natlab_varying_map_regrowth",
    "natlab_varying_map_randomized",
    "skymaze_irreversible_path_hard",
    "skymaze_irreversible_path_varied",
    "psychlab_arbitrary_visuomotor_mapping",
    "psychlab_continuous_recognition",
    "psychlab_sequential_comparison",
    "psychlab_visual_search",
    "explore_object_locations_small",
    "explore_object_locations_large",
    "explore_obstructed_goals_small",
    "explore_obstructed_goals_large",
    "explore_goal_locations_small",
    "explore_goal_locations_large",
    "explore_object_rewards_few",
    "explore_object_rewards_many",
)

# The engine mixes it into every seed, so that testing meets no map of training (0 in both IMPALA's
# training and the engine's default). The number is that of IMPALA's published code.
_TRAINING_MIXER_SEED, _HOLD_OUT_MIXER_SEED = 0, 0x600D5EED


def level_to_play(task: str, hold_out: bool) -> str:
    """The level behind a task, by its name in training or, held out, in testing.

    Levels without a test version are tested on themselves, with other seeds.
    """
    return task.removesuffix("_train") + "_test" if hold_out and task.endswith("_train") else task


def settings(hold_out: bool, dataset_path: str) -> dict[str, str]:
    """Returns the settings of the engine, as in IMPALA's published code.

    Without `allowHoldOutLevels` test levels do not load.

    Args:
      hold_out: Whether to use the levels and seeds that are held out for testing.
      dataset_path: Directory of the images of two levels of psychlab; "" for none.
    """
    chosen = {
        "logLevel": "WARN",
        "mixerSeed": str(_HOLD_OUT_MIXER_SEED if hold_out else _TRAINING_MIXER_SEED),
    }
    if hold_out:
        chosen["allowHoldOutLevels"] = "true"
    if dataset_path:
        chosen["datasetPath"] = dataset_path
    return chosen
