"""A configuration's file, the user's or one that comes with the commands, and its keys as flags."""

import contextlib
import pathlib
import re
import runpy
import traceback
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ml_collections
from absl import flags
from ml_collections.config_flags import config_flags

from laser_tf import config_values, errors
from laser_tf.replay.schemes import registry as schemes
from laser_tf.sweeps import sweep_config
from laser_tf.training import run_config
from laser_tf.workdir import run_directory

CHOOSING = (
    "agent.kind",
    "environment.suite",
    "replay.scheme",
)  # keys on which it depends which others there are
_OVERRIDE = re.compile(r"--?config\.(\w+)(?:\.(\w+))?")
_ROOT = pathlib.Path(__file__).resolve().parents[1]  # of launch/ and configs/, wherever they are


def find(given: str) -> str:
    """The file that `--config` names.

    Args:
      given: Path or name of a file, e.g. "configs/laser.py:catch" or "laser:catch". The part after
        the colon, which is optional, is the argument of the file's `get_config`.

    Returns:
      The path as it was given if there is such a file, or none at all; otherwise that of the one
      beside `launch/`, so that commands find it from any folder.
    """
    path, separator, argument = given.partition(":")
    if pathlib.Path(path).is_file():
        return given
    for own in (_ROOT / path, _ROOT / "configs" / path, _ROOT / "configs" / f"{path}.py"):
        if own.is_file():
            return f"{own}{separator}{argument}"
    return given


def load(given: str) -> ml_collections.ConfigDict | None:
    """Returns the configuration that `--config` names; None if there is no such file.

    Raises:
      UserError: If the file cannot be run or defines no configuration.
    """
    # After the colon, ml_collections' way to give get_config an argument.
    path, separator, argument = find(given).partition(":")
    try:
        pathlib.Path(path).read_bytes()  # runpy would look for a program in a directory
    except OSError:
        return None
    try:
        get_config = runpy.run_path(path).get("get_config")
        config = get_config and get_config(*[argument] * len(separator))
    except (Exception, SystemExit) as error:  # whatever the file does
        raise errors.UserError(
            f"cannot load --config={given}: {_describe_failure(error, path)}"
        ) from None
    if not get_config:
        raise errors.UserError(f"cannot load --config={given}: it defines no get_config()")
    if not isinstance(config, ml_collections.ConfigDict):
        raise errors.UserError(
            f"cannot load --config={given}: get_config() returns {type(config).__name__}, not an "
            "ml_collections.ConfigDict"
        )
    return config


def _describe_failure(error: BaseException, path: str) -> str:
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: SyntaxError: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == path]
    where = f"line {lines[-1]}: " if lines else ""
    return f"{where}{type(error).__name__}: {one_line(error)}"


def one_line(error: BaseException) -> str:
    """An error as a line of text."""
    while error.args and isinstance(error.args[0], Exception):  # ml_collections wraps its errors
        error = error.args[0]
    text = (
        error.args[0] if isinstance(error, KeyError) and error.args else error
    )  # a KeyError's str has quotes
    return " ".join(str(text).split()) or type(error).__name__


def variants() -> list[str]:
    """Returns all configurations of `configs/`, e.g. "laser:atari"."""
    return [
        f"{path.stem}:{variant}"
        for path in sorted((_ROOT / "configs").glob("[!_]*.py"))
        for variant in runpy.run_path(str(path)).get("VARIANTS", ())
    ]


def close_variants(given: str) -> list[str]:
    """Returns up to three of `variants` that resemble a `--config` which names no file."""
    path, _, variant = given.partition(":")
    name = "_".join(filter(None, (pathlib.Path(path).stem, variant)))
    known = {known.replace(":", "_"): known for known in variants()}
    close = [name] if name in known else config_values.close_names(name, known)
    return [known[name] for name in close]


class IntegerParser(flags.IntegerParser):
    """Parses flags of int keys, which may be written as a float: 1e5."""

    def convert(self, argument: Any) -> int:
        """Returns the int.

        Raises:
          ValueError: if the argument is no whole number.
        """
        try:
            return super().convert(argument)
        except ValueError:
            with contextlib.suppress(ValueError):
                number = float(argument)
                if number.is_integer():
                    return int(number)
            raise ValueError("the value must be a whole number") from None


config_flags.register_flag_parser_for_type(int, IntegerParser())


def unknown_key(parser: "Parser", path: str, arguments: Iterable[str]) -> str:
    """Returns the first `--config.` key of a command line that a configuration lacks.

    Args:
      parser: Parser of the `--config` flag.
      path: File of the configuration.
      arguments: The command line.

    Returns:
      The key with close names, in words; "" if every section and key exists.
    """
    values = parser.parse(path).to_dict()
    for argument in arguments:
        if not (match := _OVERRIDE.match(argument)):
            continue
        section, name = match.groups()
        if section not in values:
            names = close_keys(name, values) if name else []  # of another section
            return _hint(section, names or config_values.close_names(section, values), values)
        keys = values[section]
        if name and isinstance(keys, Mapping) and name not in keys:
            if section == "replay" and (owners := schemes.schemes_with(name)):
                return f"{name!r}: it is a key of replay.scheme {' or '.join(owners)}"
            close = [f"{section}.{key}" for key in config_values.close_names(name, keys)]
            return _hint(name, close, keys)
    return ""


def close_keys(name: str, values: Mapping[str, Any]) -> list[str]:
    """Returns `section.key` for each key of nested values with this name."""
    return [f"{section}.{name}" for section, keys in values.items() if name in keys]


def _hint(name: str, close: Sequence[str], known: Iterable[str]) -> str:
    hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(sorted(known))}"
    return f"{name!r}: {hint}"


class Parser(config_flags.ConfigFileFlagParser):
    """Reads the file that `find` finds; keys that it leaves to their defaults are flags, too."""

    def __init__(self, name: str, chosen: Mapping[str, str], run: pathlib.Path | None = None):
        """Reads nothing yet.

        Args:
          name: of the flag.
          chosen: what the command line says of `CHOOSING`, key -> value.
          run: Directory of a run whose `config.json` may be parsed, too.
        """
        super().__init__(name)
        self.chosen = chosen
        self.run = run
        self._added: set[tuple[str, str]] = set()  # of the file that was read last

    def parse(self, path: str) -> Any:
        """The configuration of a file or name, with the default of each key that it leaves out.

        Raises:
          WorkdirError: If the `config.json` of `run` cannot be read.
        """
        is_run = self.run and path == str(self.run / run_directory.CONFIG_FILE)
        config = _read_run(self.run) if is_run else super().parse(find(path))
        # What stands for a file that could not be read says so when its values are asked for.
        is_read = isinstance(config, ml_collections.ConfigDict)
        if is_read:
            _switch_scheme(config, self.chosen.get("replay.scheme"))
        self._added = _add_defaults(config, self.chosen) if is_read else set()
        return config

    def named(self, values: dict[str, Any], given: Iterable[str]) -> dict[str, Any]:
        """The values that the file or a flag names: what a key's absence means is not decided here.

        Args:
          values: of the file that was read last, nested, overrides applied.
          given: the overrides' keys, "section.key".
        """
        kept = {tuple(key.split(".")[:2]) for key in given}
        for section, key in self._added - kept:
            if (section,) not in kept:  # else a flag gave the whole section
                del values[section][key]
        return values


def defaults(
    values: Mapping[str, Mapping[str, Any]], chosen: Mapping[str, Any], parser: types.ModuleType
) -> dict[str, dict[str, Any]]:
    """The defaults of a configuration's sections, nested, for the agent and suite that it gets.

    Args:
      values: nested; what they leave out has its default.
      chosen: what the command line says of `CHOOSING`, key -> value.
      parser: of the configuration, `run_config` or `sweep_config`.

    Raises:
      ValueError: for an agent or a suite that there is not.
    """
    return parser.defaults(
        run_config.override({"agent": {}, "environment": {}, "replay": {}} | dict(values), chosen)
    )


def _read_run(workdir: pathlib.Path) -> ml_collections.ConfigDict:
    """Returns the configuration of a run, locked as that of a configuration file."""
    values = run_directory.read_config(workdir)
    for section, keys in values.items():
        if isinstance(keys, dict):  # Flags have tuples where JSON has lists.
            values[section] = {
                key: tuple(value) if isinstance(value, list) else value
                for key, value in keys.items()
            }
    try:
        return ml_collections.ConfigDict(values).lock()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise run_directory.WorkdirError(
            f"cannot read {workdir / run_directory.CONFIG_FILE}: {errors.one_line(error)}; restore "
            "it from a backup, or give --config"
        ) from None


def _switch_scheme(config: ml_collections.ConfigDict, scheme: str | None) -> None:
    """Drops the keys that another replay scheme does not have, if the command line names one."""
    section = config.get("replay")
    if scheme not in schemes.names() or not isinstance(section, ml_collections.ConfigDict):
        return
    if section.get("scheme", schemes.DEFAULT) != scheme:
        with config.unlocked():
            config.replay = ml_collections.ConfigDict(schemes.switched(section.to_dict(), scheme))


def _add_defaults(
    config: ml_collections.ConfigDict, chosen: Mapping[str, str]
) -> set[tuple[str, str]]:
    """Returns (section, key) of what was added."""
    values = config.to_dict()
    try:
        run_config.check_nesting(values)
        known = defaults(values, chosen, sweep_config if "sweep" in values else run_config)
    except ValueError:  # told by those who parse the values
        return set()
    added = set()
    with config.unlocked():
        for section, keys in known.items():
            if section not in config:
                config[section] = ml_collections.ConfigDict()
            for key in keys.keys() - config[section].keys():
                config[section][key] = keys[key]
                added.add((section, key))
    return added
