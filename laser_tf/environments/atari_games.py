"""The names of Atari games, known without loading an emulator."""

from laser_tf.environments import names

# Those of ale-py but for combat, joust, maze_craze and warlords: ALE has no game for one player on
# these and ends the whole process when it loads them.
# fmt: off
GAMES = (
    "adventure", "air_raid", "alien", "amidar", "assault", "asterix", "asteroids", "atlantis",
    "atlantis2", "backgammon", "bank_heist", "basic_math", "battle_zone", "beam_rider", "berzerk",
    "blackjack", "bowling", "boxing", "breakout", "carnival", "casino", "centipede",
    "chopper_command", "crazy_climber", "crossbow", "darkchambers", "defender", "demon_attack",
    "donkey_kong", "double_dunk", "earthworld", "elevator_action", "enduro", "entombed", "et",
    "fishing_derby", "flag_capture", "freeway", "frogger", "frostbite", "galaxian", "gopher",
    "gravitar", "hangman", "haunted_house", "hero", "human_cannonball", "ice_hockey", "jamesbond",
    "journey_escape", "kaboom", "kangaroo", "keystone_kapers", "king_kong", "klax", "koolaid",
    "krull", "kung_fu_master", "laser_gates", "lost_luggage", "mario_bros", "miniature_golf",
    "montezuma_revenge", "mr_do", "ms_pacman", "name_this_game", "othello", "pacman", "phoenix",
    "pitfall", "pitfall2", "pong", "pooyan", "private_eye", "qbert", "riverraid", "road_runner",
    "robotank", "seaquest", "sir_lancelot", "skiing", "solaris", "space_invaders", "space_war",
    "star_gunner", "superman", "surround", "tennis", "tetris", "tic_tac_toe_3d", "time_pilot",
    "trondead", "turmoil", "tutankham", "up_n_down", "venture", "video_checkers", "video_chess",
    "video_cube", "video_pinball", "wizard_of_wor", "word_zapper", "yars_revenge", "zaxxon",
)
# fmt: on


def check_task(task: str) -> str:
    """The game of "ms_pacman" or "ALE/MsPacman-v5"; ValueError for what ale-py cannot play."""
    name = names.of_gymnasium_id(task, "ALE", GAMES)
    return names.check("Atari game", name, GAMES, example="ms_pacman")
