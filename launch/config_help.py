"""Text of `--help`: the flags of a command and the keys of its configuration.

Units and meanings are the comments of the fields of the configuration's dataclasses, `unit;
meaning` for numbers.
"""

import ast
import dataclasses
import inspect
import io
import shlex
import textwrap
import tokenize
from collections.abc import Iterable, Mapping
from typing import Any

from absl import flags

from laser_tf.training import run_config
from launch import config_flag


def describe_flags(known: Iterable[flags.Flag], width: int) -> str:
    """Describes flags with their defaults and meanings, in lines of `width` columns."""
    entries = []
    for flag in known:
        name = f"[no]{flag.name}" if flag.boolean else flag.name
        if flag.default not in (None, []) and not flag.boolean:
            name += "=" + _quoted(flag.default_as_str.strip("'"))
        entries.append(_entry(f"--{name}", " ".join(flag.help.split()), width))
    return "\n".join(entries)


def describe_keys(values: Mapping[str, Mapping[str, Any]], width: int) -> str:
    """Describes all keys by section, with values, units and meanings; raises ConfigError."""
    parts = []
    for name, section_class in config_flag.section_classes(values).items():
        run_config.check_keys(name, section_class, values)
        summary = inspect.getdoc(section_class).splitlines()[0]
        parts += ["", *textwrap.wrap(f"{name}: {summary}", width)]
        for key, comment in comments(section_class).items():
            value = values.get(name, {}).get(key, getattr(section_class, key, {}))
            parts.append(_entry(f"--config.{name}.{key}={_quoted(value)}", comment, width))
    return "\n".join(parts)


def comments(section_class: type) -> dict[str, str]:
    """Returns the comment of each field of a dataclass, including inherited fields, or ""."""
    known = {}
    for part in reversed(section_class.__mro__):
        if dataclasses.is_dataclass(part):
            known |= _own_comments(part)
    return {field.name: known.get(field.name, "") for field in dataclasses.fields(section_class)}


def _own_comments(section_class: type) -> dict[str, str]:
    source = textwrap.dedent(inspect.getsource(section_class))
    by_line = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    definition: Any = ast.parse(source).body[0]
    found = {
        node.target.id: " ".join(
            by_line[line] for line in range(node.lineno, node.end_lineno + 1) if line in by_line
        )
        for node in definition.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    return {name: comment for name, comment in found.items() if comment}  # Others are inherited.


def _quoted(value: Any) -> str:
    text = str(value)
    return f'"{text}"' if "'" in text and not set(text) & {*'"$`\\!'} else shlex.quote(text)


def _entry(given: str, meaning: str, width: int) -> str:
    return "\n".join(
        textwrap.wrap(given, width, initial_indent="  ", subsequent_indent="    ")
        + textwrap.wrap(meaning, width, initial_indent=" " * 6, subsequent_indent=" " * 6)
    )
