"""The papers' ways to play Atari: values of `AtariConfig`, by the name of who plays so."""

from collections.abc import Mapping
from typing import Any

from laser_tf.environments import names

IMPALA, DOPAMINE, REVISITING = "impala", "dopamine", "revisiting"
OWN = "own"  # values that are none of these

PROTOCOLS: dict[str, dict[str, Any]] = {
    IMPALA: {  # Espeholt et al. 2018; the frames are LASER's, appendix D
        "sticky_actions": 0.0,
        "life_loss_is_end": True,
        "no_op_max": 30,  # env frames, 1 to so many
        "full_action_space": False,
        "max_frames_per_episode": 108_000,  # env frames, 30 minutes
    },
    # Dopamine's baselines (Castro et al. 2018): Machado et al.'s, but for the last two.
    DOPAMINE: {
        "sticky_actions": 0.25,
        "life_loss_is_end": False,
        "no_op_max": 0,
        "full_action_space": False,
        "max_frames_per_episode": 108_000,  # env frames: 27,000 agent steps of 4
    },
    REVISITING: {  # Machado et al. 2018, "Revisiting the Arcade Learning Environment"
        "sticky_actions": 0.25,
        "life_loss_is_end": False,
        "no_op_max": 0,
        "full_action_space": True,
        "max_frames_per_episode": 18_000,  # env frames, 5 minutes
    },
}


def values(name: str) -> dict[str, Any]:
    """Returns the values of a protocol; ValueError for an unknown name."""
    return dict(PROTOCOLS[names.check("protocol", name, PROTOCOLS)])


def name_of(environment: Mapping[str, Any]) -> str:
    """The protocol that values of `AtariConfig` are; `OWN` for none of them."""
    for name, of_protocol in PROTOCOLS.items():
        if all(environment.get(key) == value for key, value in of_protocol.items()):
            return name
    return OWN
