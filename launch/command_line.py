"""Flags and errors of the commands: every error of the user is one line."""

import contextlib
import datetime
import errno
import inspect
import os
import pathlib
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn

from absl import app, flags

from laser_tf import errors, user_code
from laser_tf.api import config_files
from laser_tf.environments import python_config
from laser_tf.host import hardware, log_messages, private_network
from laser_tf.replay import server_address
from laser_tf.training import callbacks
from launch import config_flag

_CALLBACK = re.compile(r"([\w.]+):([\w.]+)(?:\((.*)\))?", re.DOTALL)
# pathlib's `exists` and `is_file` raise these errors instead of returning False.
_UNUSABLE = (errno.EACCES, errno.ENAMETOOLONG)
_HELP = ("--help", "-help", "--helpshort", "-h", "-?")
_config: config_flag.ConfigFlag | None = None  # of this command


class UsageError(errors.UserError):
    """An invalid argument of a command; the message names the value and the remedy."""


def define_config(default: str, *, resumes: bool = False) -> config_flag.ConfigFlag:
    """Defines the flag `--config` of a command, see `config_flag.ConfigFlag`."""
    global _config
    _config = config_flag.ConfigFlag(default, resumes=resumes)
    return _config


def define_trust_config() -> flags.FlagHolder:
    """Defines the `--trust_config` flag of a command that reads a directory of another author."""
    return flags.DEFINE_bool(
        "trust_config", False, "import the modules that config.json or policy.json names"
    )


class _PathParser(flags.ArgumentParser):
    """Parser of a path."""

    def parse(self, argument: str) -> str:
        """Returns the path with the home directory for `~/`; raises ValueError for ""."""
        if not argument:  # From a variable of the shell that is not set.
            raise ValueError("a path must not be empty. Name one, or leave the flag out.")
        return config_files.expand_home(argument)


def define_path(name: str, meaning: str) -> flags.FlagHolder:
    """Defines the flag of a path, by default None."""
    return flags.DEFINE(_PathParser(), name, None, meaning)


def run(main: Callable[[], None], expected_errors: tuple[type[Exception], ...] = ()) -> None:
    """Parses the flags, runs `main` and exits; does not return.

    `errors.UserError`, the `expected_errors`, and errors of a path on the command line that cannot
    be used print one line and exit with code 1. Any other exception is a bug and keeps its
    traceback.
    """

    def guarded(arguments: list[str]) -> None:
        hardware.keep_freed_memory()
        log_messages.show()  # After app.run, which installs its own handlers.
        if len(arguments) > 1:
            _fail(f"unknown argument {arguments[1]!r}: every option starts with --", code=2)
        try:
            with _naming_paths(expected_errors):
                main()
        except (errors.UserError, *expected_errors) as error:  # type: ignore[misc]
            _fail(errors.one_line(error), code=1)
        leave(0)

    app.run(guarded, flags_parser=_parse_flags)


@contextlib.contextmanager
def _naming_paths(expected_errors: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turns errors of paths on the command line into UsageErrors.

    These are the errors of `_UNUSABLE` and the `expected_errors`.
    """
    try:
        yield
    except OSError as error:
        is_expected = error.errno in _UNUSABLE or isinstance(error, expected_errors)
        if not is_expected or not _is_given(error.filename):
            raise
        raise UsageError(
            f"cannot use {error.filename}: {error.strerror}. Use another path."
        ) from None


def _is_given(path: object) -> bool:
    """Returns whether a path is the value of an argument of the command line, or below it."""
    if not isinstance(path, str):
        return False
    texts = [argument.partition("=")[2] or argument for argument in sys.argv[1:]]
    texts += [text.partition(":")[0] for text in texts]  # A path may contain colons, too.
    given = [pathlib.Path(config_files.expand_home(text)).absolute() for text in texts]
    return any(pathlib.Path(path).absolute().is_relative_to(value) for value in given)


def check_reachable(server: str, ray: str) -> None:
    """Raises UserError if this process cannot reach the replay server or the Ray head of a run."""
    for key, value in (("replay.address", server), ("cluster.address", ray)):
        if value and not private_network.names_other_machines(sys.argv):
            raise UsageError(
                f"config.{key} must be given as a flag, got {value} from the config's file, which "
                f"is read in the run's private network. Give --config.{key}={value}."
            )
    server_address.check_answers(server)


def key_values(flag: flags.FlagHolder, form: str) -> dict[str, str]:
    """Returns the entries KEY=VALUE of a flag that may be given several times.

    Raises:
      UsageError: If an entry has another form than `form`, or a key is given twice.
    """
    values: dict[str, str] = {}
    for entry in flag.value:
        key, separator, text = entry.partition("=")
        if not key or not separator or key in values:
            raise UsageError(f"--{flag.name}={entry}: use {form}, each key once")
        values[key] = text
    return values


def check_unused(
    unused: Iterable[flags.FlagHolder], where: str, remedy: str = "Leave it out."
) -> None:
    """Raises UsageError for a flag that is given `where` it has no effect, e.g. "with --random"."""
    for flag in unused:
        if flag.value != flag.default:
            raise UsageError(f"--{flag.name} must be left out {where}, got {flag.value}. {remedy}")


def make_callback(entry: str) -> callbacks.Callback:
    """Creates a callback; its module is installed or in the current folder.

    Raises:
      UsageError: If the entry has another form, names something else than a callback, or has
        arguments that do not fit.
      ConfigError: If the module or the class is missing. Other errors of user code pass through.
    """
    match = _CALLBACK.fullmatch(entry)
    if not match:
        raise UsageError(
            f"--callbacks must be module:Class or module:Class(key=value, ...), got {entry}. Use "
            "e.g. --callbacks=laser_tf.callbacks:KeepBest."
        )
    module_name, name, given = match.groups()
    made = user_code.load_attribute(module_name, name, example=f"{module_name}:MyCallback")
    arguments = python_config.parse_arguments(given or "")
    if callable(made):
        try:
            inspect.signature(made).bind(**arguments)
        except TypeError as error:
            raise UsageError(
                f"--callbacks must give the arguments of {name}, got {entry}: {error}."
            ) from None
        made = made(**arguments)
    if not isinstance(made, callbacks.Callback):
        raise UsageError(
            f"--callbacks must name a subclass of laser_tf.callbacks.Callback, got {entry}, a "
            f"{type(made).__name__}. Derive the class from it."
        )
    return made


def default_workdir(config: config_flag.ConfigFlag) -> str:
    """Returns a new run directory, named by the configuration and the time."""
    path, _, variant = pathlib.Path(config.file).name.partition(":")
    name = "-".join(filter(None, (pathlib.Path(path).stem, variant)))
    # To the millisecond, since a loop of a shell starts several commands within a second.
    return f"runs/{name}-{datetime.datetime.now().strftime('%Y%m%d-%H%M%S-%f')[:-3]}"


def given_command(module: str, workdir: pathlib.Path) -> str:
    """Returns this process's command line, for a shell, with the run's or sweep's directory."""
    given = sys.argv[1:]
    if not flags.FLAGS["workdir"].present:
        given = [*given, f"--workdir={workdir}"]
    return shlex.join(["python", "-m", f"launch.{module}", *given])


def _parse_flags(arguments: list[str]) -> list[str]:
    others = [argument for argument in arguments if argument not in _HELP]
    try:
        rest = flags.FLAGS(_config.take(others) if _config else others)
    except flags.UnrecognizedFlagError as error:
        _fail(f"{errors.one_line(error)}{_config_key(error.flagname)}", code=2)
    except flags.Error as error:
        _fail(errors.one_line(error), code=2)
    if len(others) < len(arguments):
        try:
            with _naming_paths():
                _print_help(arguments[0])
            sys.stdout.flush()
        except BrokenPipeError:  # The reader has closed the pipe.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            leave(128 + signal.SIGPIPE)
        except errors.UserError as error:
            _fail(errors.one_line(error), code=2)
        leave(0)
    return rest


def _config_key(name: str) -> str:
    """Returns a hint at the keys of this name for a flag that lacks its section, or ""."""
    with contextlib.suppress(errors.UserError, OSError):  # Loading the configuration fails, too.
        keys = config_flag.close_keys(name, _config.values()) if _config else []
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
    print(config_help.describe_flags(own, width))
    if _config:
        keys = config_help.describe_keys(_config.values(), width)
        print(f"\nKeys of {_config.file}, with their values, units and meanings:\n{keys}")
    print("\n--helpfull lists the flags of libraries, too.")


def _fail(message: str, code: int) -> NoReturn:
    print(f"error: {message}", file=sys.stderr)
    leave(code)


def leave(code: int) -> NoReturn:
    """Ends the process at once; sys.exit would wait for threads that may block for ever."""
    log_messages.flush()
    os._exit(code)
