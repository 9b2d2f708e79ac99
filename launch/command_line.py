"""What launch scripts share: flags from the command line, and errors as one clear line."""

import contextlib
import datetime
import faulthandler
import logging
import os
import pathlib
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Collection, Sequence
from typing import NoReturn

import ml_collections
from absl import app, flags
from ml_collections import config_flags

from laser_tf import errors
from laser_tf.environments import user_modules
from laser_tf.host import allocator, log_messages, private_network, terminal
from laser_tf.replay import server_address
from laser_tf.workdir import run_directory
from launch import found_config

_HELP = ("--help", "-help", "--helpshort", "-h", "-?")


class UsageError(errors.UserError):
    """Something the user gave cannot be used; the message names the value and the remedy."""


def run(main: Callable[[], None], expected_errors: tuple[type[Exception], ...] = ()) -> None:
    """Parses the flags, runs `main` and exits; does not return.

    Args:
      main: called without arguments once the flags are parsed.
      expected_errors: Types that are printed as one line with exit code 1, in addition to
        `errors.UserError`. Any other exception is a bug and keeps its traceback.
    """

    def guarded(arguments: list[str]) -> None:
        allocator.keep_freed_memory()
        # Here, because app.run installs handlers of its own.
        log_messages.show()
        if len(arguments) > 1:
            _fail(f"unknown argument {arguments[1]!r}: every option starts with --", code=2)
        try:
            main()
        except (errors.UserError, *expected_errors) as error:  # type: ignore[misc]
            _fail(found_config.one_line(error), code=1)
        leave(0)

    app.run(guarded, flags_parser=_parse_flags)


def divert_native_messages(path: pathlib.Path) -> None:
    """Sends what C++ libraries print to a file; Python's own messages still reach the terminal.

    Reverb and TensorFlow write to the standard error stream at will, through the progress display.

    Raises:
      UsageError: If the file cannot be written.
    """
    sys.stderr.flush()
    try:
        log = path.open("ab")
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}; {errors.file_remedy(error)}, or move the file "
            "away"
        ) from None
    shown = terminal.stream_to(os.dup(2))
    with log:
        os.dup2(log.fileno(), 2)
    sys.stderr = shown
    faulthandler.enable(shown)  # a crash of theirs still shows where
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(shown)


def define_config(default: str | None, *, resumes: bool = False) -> flags.FlagHolder:
    """The `--config` flag of a command, whose values are flags, too.

    The file and overrides of the default one are read at once, before any other flag: a bad one
    ends the process here, as `run` does later.

    Args:
      default: the file that is used where the user names none; None: there must be one.
      resumes: Whether the `config.json` of an existing run in `--workdir` replaces the default.
    """
    default = default and found_config.find(default)
    run = _resumed_run() if resumes else None
    if run:
        default = str(run / run_directory.CONFIG_FILE)
    given = given_flag(sys.argv, "config", default)
    if given and not run:
        read_config_file(given)
    config = config_flags.DEFINE_config_file(
        "config", None, "a file, or a name of configs/, whose keys, below, are flags, too"
    )
    chosen = {key: given_flag(sys.argv, f"config.{key}", None) for key in found_config.CHOOSING}
    flags.FLAGS["config"].parser = found_config.Parser(
        "config", {key: value for key, value in chosen.items() if value}, run
    )
    try:
        flags.set_default(config, default)  # read by the parser
    except flags.Error as error:
        _fail(found_config.one_line(error), code=2)
    except (AttributeError, KeyError) as error:
        _fail(_unknown_key(error, given or ""), code=2)
    except errors.UserError as error:
        _fail(found_config.one_line(error), code=1)
    return config


def _resumed_run() -> pathlib.Path | None:
    """Returns the directory of an existing run that the command line names without `--config`."""
    workdir = given_flag(sys.argv, "workdir", None)
    if not workdir or given_flag(sys.argv, "config", None) is not None:
        return None
    path = pathlib.Path(workdir)
    return path if (path / run_directory.CONFIG_FILE).is_file() else None


def check_trusted(config: flags.FlagHolder, code: Collection[str], trust: bool) -> None:
    """Checks the code that the `config.json` of a resumed run names.

    Args:
      config: The `--config` flag.
      code: Tasks of the configuration, see `EnvironmentConfig.user_code`.
      trust: Value of the `--trust_config` flag.

    Raises:
      UntrustedError: If the configuration was read from a run directory, and `code` has tasks that
        neither `--config.environment.task` nor `trust` permits.
    """
    run = flags.FLAGS[config.name].parser.run
    if run and not trust:
        named = code if "environment.task" in given_values(config) else ()
        user_modules.check_trusted(run / run_directory.CONFIG_FILE, code, named)


def define_trust_config() -> flags.FlagHolder:
    """Defines the `--trust_config` flag of a command that reads another run's directory."""
    return flags.DEFINE_bool(
        "trust_config", False, "import the modules that the run's config.json names"
    )


def check_elsewhere(server: str, ray: str) -> None:
    """Checks that this process can reach what a run names on other machines.

    Args:
      server: Address of its replay server; "" for none.
      ray: Address of Ray's head; "" for none.

    Raises:
      UsageError: If only the config's file names them, which is read in the private network.
      ValueError: If the replay server does not answer.
    """
    for key, value in (("replay.address", server), ("cluster.address", ray)):
        if value and not private_network.names_others(sys.argv):
            raise UsageError(
                f"config.{key} must be given as a flag, got {value} from the config's file, which "
                f"is read in the run's private network. Give --config.{key}={value}."
            )
    server_address.check_answers(server)


def given_flag(arguments: Sequence[str], name: str, default: str | None) -> str | None:
    """A flag's value on a command line, the program's name first, before flags are parsed."""
    early = flags.FlagValues()
    early.set_gnu_getopt(True)  # the value of a flag that is not known yet ends nothing
    given = flags.DEFINE_string(name, default, "", flag_values=early)
    with contextlib.suppress(flags.Error):  # told by those who parse all flags
        early(arguments, known_only=True)
    early.mark_as_parsed()
    return given.value


def read_config_file(given: str) -> ml_collections.ConfigDict | None:
    """Returns the configuration of a `--config`, without flags for its keys; None without a file.

    A file that cannot be run, or defines no configuration, ends the process.
    """
    try:
        return found_config.load(given)
    except errors.UserError as error:
        _fail(found_config.one_line(error), code=2)


def config_values(config: flags.FlagHolder) -> dict:
    """The nested values of a `--config` flag, overrides applied, without what neither names.

    Raises:
      UsageError: if the configuration's file cannot be loaded.
    """
    flag = flags.FLAGS[config.name]
    try:
        values = config.value.to_dict()
    except OSError as error:
        reason = str(error).splitlines()[-1].strip()
        given = config_file(config.name)
        close = found_config.close_variants(given)
        hint = " or ".join(close) or "a file of configs/"
        raise UsageError(f"cannot load --config={given}: {reason}. Use {hint}.") from None
    return flag.parser.named(values, given_values(config))


def given_values(config: flags.FlagHolder) -> dict[str, object]:
    """What the user sets of a `--config` flag's values, "section.key" -> value."""
    return config_flags.get_override_values(flags.FLAGS[config.name])


def config_file(flag_name: str) -> str:
    """The path that was given to a `--config` flag."""
    return config_flags.get_config_filename(flags.FLAGS[flag_name])


def key_values(flag: flags.FlagHolder, form: str) -> dict[str, str]:
    """What a flag says that is given several times, a KEY=VALUE each: key -> text.

    Args:
      flag: of several texts.
      form: of an entry, for whoever gave another one.

    Raises:
      UsageError: for what is no KEY=VALUE, or a key that is given twice.
    """
    values: dict[str, str] = {}
    for entry in flag.value:
        key, separator, text = entry.partition("=")
        if not key or not separator or key in values:
            raise UsageError(f"--{flag.name}={entry}: use {form}, each key once")
        values[key] = text
    return values


def default_workdir(flag_name: str) -> str:
    """Returns a new run directory, named by the configuration of a `--config` flag and the time."""
    path, _, variant = config_file(flag_name).partition(":")
    name = "-".join(filter(None, (pathlib.Path(path).stem, variant)))
    # To the millisecond: a shell's loop starts several commands within a second.
    return f"runs/{name}-{datetime.datetime.now().strftime('%Y%m%d-%H%M%S-%f')[:-3]}"


def given_command(module: str, workdir: pathlib.Path) -> str:
    """Returns this process's command line, for a shell, with the run's or sweep's directory."""
    given = sys.argv[1:]
    if given_flag(sys.argv, "workdir", None) is None:
        given = [*given, f"--workdir={workdir}"]
    return shlex.join(["python", "-m", f"launch.{module}", *given])


def _parse_flags(arguments: list[str]) -> list[str]:
    others = [argument for argument in arguments if argument not in _HELP]
    try:
        rest = flags.FLAGS(others)
    except flags.UnrecognizedFlagError as error:
        _fail(f"{found_config.one_line(error)}{_config_flag(error.flagname)}", code=2)
    except flags.Error as error:
        _fail(found_config.one_line(error), code=2)
    except (AttributeError, KeyError) as error:
        # ml_collections' way to say that the configuration has no such key.
        path = given_flag(sys.argv, "config", flags.FLAGS["config"].default)
        _fail(_unknown_key(error, path or ""), code=2)
    if len(others) < len(arguments):
        try:
            _print_help(arguments[0])
            sys.stdout.flush()
        except BrokenPipeError:  # whoever read it wants no more, and what is left goes nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            leave(128 + signal.SIGPIPE)
        leave(0)
    return rest


def _unknown_key(error: Exception, path: str) -> str:
    """Describes a key that ml_collections does not find in the configuration at a path."""
    parser, found = flags.FLAGS["config"].parser, ""
    with contextlib.suppress(AttributeError, KeyError, OSError, ValueError):
        found = found_config.unknown_key(parser, path, sys.argv[1:])
    return f"unknown config key: {found or found_config.one_line(error)}"


def _config_flag(name: str) -> str:
    """Returns the flag of a config key for a flag that lacks its section; "" without one."""
    if "config" not in flags.FLAGS:
        return ""
    with contextlib.suppress(UsageError, ValueError, AttributeError):
        keys = found_config.close_keys(name, flags.FLAGS["config"].value.to_dict())
        return f"; use {' or '.join(f'--config.{key}' for key in keys)}" if keys else ""
    return ""


def _print_help(program: str) -> None:
    from launch import config_help

    width = min(shutil.get_terminal_size().columns, 100)
    modules = flags.FLAGS.flags_by_module_dict()
    own = [flag for module, of_module in modules.items() for flag in of_module
           if module == program or module.startswith("launch.")]  # fmt: skip
    own.sort(key=lambda flag: flag.name != "config")
    print(f"{sys.modules['__main__'].__doc__.strip()}\n\nFlags, with their defaults:\n")
    print(config_help.describe_flags((f for f in own if not f.name.startswith("config.")), width))
    if "config" in flags.FLAGS:
        with contextlib.suppress(UsageError, ValueError):  # told by a command that is to run
            values = config_values(flags.FLAGS["config"])
            keys = config_help.describe_keys(values, width)
            print(f"\nKeys of {config_file('config')}, with their values, units and meanings:")
            print(keys)
    print("\n--helpfull lists the flags of libraries, too.")


def _fail(message: str, code: int) -> NoReturn:
    print(f"error: {message}", file=sys.stderr)
    leave(code)


def leave(code: int) -> NoReturn:
    """Ends the process at once."""
    terminal.flush()
    # Not sys.exit: threads of Reverb's and TensorFlow's may be blocked, for minutes or for ever.
    os._exit(code)
