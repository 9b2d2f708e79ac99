"""What the user may choose of a figure: games, lengths of history, and keys of configurations."""

from collections.abc import Iterable, Mapping, Sequence

from laser_tf.analysis import figure, figures
from laser_tf.environments import names
from launch import command_line

# Of each run, whatever is given.
_OF_EACH_RUN = ("run.evaluation_episodes", "sweep.label", "sweep.replica")
_THRESHOLD = "agent.kl_threshold"  # read by agents with a trust region alone
HISTORIES = ("80", "60", "50", "40", "20", "10", "1")  # agent steps


def check_keys(variant_name: str, variant: dict, given: Iterable[str]) -> None:
    """Checks that a configuration's variant has the keys "section.key" that the user sets.

    Raises:
      UsageError: for one that it does not have.
    """
    for key in given:
        section, _, name = key.partition(".")
        if name not in variant.get(section, {}):
            raise command_line.UsageError(
                f"--config.{key}: the figure has runs by {variant_name}, too, which has no such "
                "key; change it in the file of the configuration that has it"
            )


def check_values(
    name: str, variants: Mapping[str, Mapping[str, Mapping]], given: Mapping[str, object]
) -> None:
    """Checks that what the user sets comes into effect, and leaves a figure's runs different.

    Args:
      name: of the figure.
      variants: label -> nested values of those conditions that have a configuration of their own.
      given: of the configuration, "section.key" -> value.

    Raises:
      UsageError: for a value that does not.
    """
    chosen = figures.ALL[name]
    for key, value in given.items():
        reason = _conflict(chosen, variants, key, value)
        if reason:
            raise command_line.UsageError(f"--config.{key}={value}: figure {name} {reason}")


def _conflict(
    chosen: figure.Figure,
    variants: Mapping[str, Mapping[str, Mapping]],
    key: str,
    value: object,
) -> str:
    """Why a value cannot be given; "" if it can."""
    if key == "environment.task" and chosen.games:
        return f"is of several games: use --games={value}"
    is_evaluated = chosen.restricts_memory and key == "run.evaluation_episodes"
    own = [c.overrides[key] for c in chosen.conditions if key in c.overrides]
    is_in_all = len(own) == len(chosen.conditions)
    if (key in _OF_EACH_RUN and not is_evaluated) or (is_in_all and set(own) != {value}):
        return "has its own values of it: leave it out"
    # Overrides stand against the user's values, but a configuration's variants do not.
    section, _, name = key.partition(".")
    of_variants = {
        repr(variants[condition.label].get(section, {}).get(name))
        for condition in chosen.conditions
        if condition.argument
    }
    if key == _THRESHOLD and all(
        key in c.overrides or c.overrides.get("agent.relevance") == "none"
        for c in chosen.conditions
    ):
        return "has its own values of it, or no trust region: leave it out"
    if (value in own and not is_in_all) or (section == "agent" and len(of_variants) > 1):
        return "compares runs by it: leave it out"
    return ""


def games(name: str, given: Sequence[str] | None, config: dict) -> list[str]:
    """A figure's games: those given by the user, its own, or the configuration's.

    Raises:
      UsageError: if games are given to a figure of one task, or some that it cannot compare.
    """
    known = figures.ALL[name].known_games
    if figures.ALL[name].games:
        chosen = list(dict.fromkeys(given or figures.ALL[name].games))
        for game in chosen if known else ():
            _check_known(game, known)
        return chosen
    if given is not None:
        raise command_line.UsageError(
            f"--games: figure {name} has one task, the configuration's; use --config, or "
            "--config.environment.task"
        )
    return [config["environment"]["task"]]


def _check_known(game: str, known: Sequence[str]) -> None:
    try:
        names.check("published curve of", game, known, example=known[0])
    except ValueError as error:
        raise command_line.UsageError(f"--games: {error}") from None


def history_lengths(name: str, given: Sequence[str] | None) -> list[int]:
    """The lengths of history, agent steps, that a figure's runs are evaluated with.

    Raises:
      UsageError: if what the user gave is no length, or the figure has none.
    """
    if not figures.ALL[name].restricts_memory:
        if given is not None:
            raise command_line.UsageError(
                f"--history_lengths: figure {name} has none; leave the option out"
            )
        return []
    lengths = given or HISTORIES
    if not all(length.isdecimal() and int(length) for length in lengths):
        raise command_line.UsageError(
            f"--history_lengths={','.join(lengths)}: use numbers of agent steps, 1 or more"
        )
    return list(dict.fromkeys(map(int, lengths)))
