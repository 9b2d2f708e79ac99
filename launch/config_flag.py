"""The flags of a command that select a configuration file and override its keys."""

import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from absl import flags

from laser_tf import config_values, errors, user_code
from laser_tf.api import config_files
from laser_tf.sweeps import population, sweep_config
from laser_tf.training import config_choices, run_config
from laser_tf.workdir import run_directory

_OVERRIDE = re.compile(r"--?(no)?config\.([^=]+)(?(1)|(?:=(.*))?)", re.DOTALL)


def section_classes(values: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the dataclass of each section of a run or, with a section `sweep`, of a sweep."""
    own = {"sweep": sweep_config.Config, "population": population.Config}
    return run_config.section_classes(values) | (own if "sweep" in values else {})


class ConfigFlag:
    """The flag `--config` of a command, and `--config.SECTION.KEY=VALUE` for its keys."""

    def __init__(self, default: str, *, resumes: bool = False):
        """Defines the flag `--config` with a default file.

        With `resumes`, the `config.json` of an existing run in `--workdir` replaces the default.
        The command then also defines the flags `--workdir` and `--trust_config`.
        """
        self.overrides: dict[str, str] = {}  # "section.key" -> text
        self._resumes = resumes
        flags.DEFINE_string(
            "config", default, "name in configs/ or path of a file; its keys, below, are flags, too"
        )
        # Not absl's holder, which has no value until all flags are valid.
        self._flag = flags.FLAGS["config"]

    def take(self, arguments: Sequence[str]) -> list[str]:
        """Stores the overrides of a command line and returns the other arguments."""
        others, remaining = [], list(arguments)
        while remaining:
            argument = remaining.pop(0)
            match = _OVERRIDE.fullmatch(argument)
            if not match:
                others.append(argument)
                continue
            negation, key, text = match.groups()
            if text is None and remaining and not (negation or remaining[0].startswith("-")):
                text = remaining.pop(0)
            self.overrides[key] = str(not negation) if text is None else text
        return others

    @property
    def run(self) -> pathlib.Path | None:
        """Directory of the existing run whose configuration is used, if any."""
        workdir = flags.FLAGS["workdir"].value if self._resumes else None
        if not workdir or self._flag.present:
            return None
        path = pathlib.Path(workdir)
        return path if (path / run_directory.CONFIG_FILE).is_file() else None

    @property
    def file(self) -> str:
        """The configuration's file, as it was given."""
        return str(self.run / run_directory.CONFIG_FILE) if self.run else self._flag.value

    def values(self) -> dict[str, Any]:
        """Returns the nested values of the file with the overrides; raises UserError."""
        values = self.file_values()
        return config_choices.override(values, self._parse_overrides(values))

    def given(self) -> dict[str, Any]:
        """Returns the values of the overrides, "section.key" -> value."""
        return self._parse_overrides(self.file_values())

    def file_values(self) -> dict[str, Any]:
        """Returns the nested values of the file; raises UserError."""
        run = self.run
        values = (
            run_directory.read_config(run)
            if run
            else config_files.load(self._flag.value, "--config").to_dict()
        )
        run_config.check_nesting(values)
        if run and not flags.FLAGS["trust_config"].value:
            source, code = run / run_directory.CONFIG_FILE, run_config.user_code_of(values)
            user_code.check_trusted(source, code, self.overrides.values())
        return values

    def _parse_overrides(self, values: dict[str, Any]) -> dict[str, Any]:
        for key in self.overrides:
            if "." not in key:
                raise errors.UserError(f"--config.{key} must be --config.SECTION.KEY=VALUE.")
        return parse_texts(values, self.overrides)


def parse_texts(values: dict[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """Parses texts of a command line, `section.key` -> text, by the types of their keys.

    `values` is the nested configuration that they change. `parse` reports unknown keys.
    """
    keys = [f"{section}.{choice}" for section, (choice, _) in config_choices.CHOICES.items()]
    chosen = {key: texts[key] for key in keys if key in texts}
    classes = section_classes(config_values.override(values, chosen))
    parsed = {}
    for key, text in texts.items():
        section, name = key.split(".", maxsplit=1)  # Keys of a sweep's grid have more parts.
        known = classes[section].__dataclass_fields__ if section in classes else {}
        parsed[key] = config_values.parse_text(text, known[name].type if name in known else Any)
    return parsed


def close_keys(name: str, values: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Returns `section.name` for each section of a configuration with a key of this name."""
    return [
        f"{section}.{name}"
        for section, known in section_classes(values).items()
        if name in known.__dataclass_fields__
    ]
