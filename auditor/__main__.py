"""`python -m auditor` and the `auditor` script: run a command, and turn an error into one line and an exit code.

Functions import what they need: `auditor --help` stays fast, and Ctrl-C is one line while other modules are loaded.
"""

from __future__ import annotations

import atexit
import codecs
import errno
import gc
import os
import re
import signal
import sys
import traceback
from contextlib import suppress
from io import StringIO
from typing import Any

from auditor.errors import AuditorError, UsageError

UNEXPECTED_ERROR_PREFIX = "auditor failed unexpectedly"
"""Start of the message for an error in auditor itself. The tests search the output of commands for it."""
DEBUG_VARIABLE = "AUDITOR_DEBUG"
MAX_MESSAGE_LENGTH = 300
INTERRUPTED = 130
"""Exit code of an interrupted command, as a shell reports SIGINT: 128 + 2."""
ENVIRONMENT_ERRNOS = frozenset(
    getattr(errno, name)
    for name in (
        *("EACCES", "EPERM", "EROFS", "ENOSPC", "EDQUOT", "EFBIG", "EIO", "EMFILE", "ENFILE", "ENAMETOOLONG", "ELOOP"),
        *("EISDIR", "ENOTDIR", "ETXTBSY", "ENODEV", "ENXIO"),
    )
)
"""Error numbers that files, permissions and disks cause, and no bug in the program."""
ENCODING_ERROR_HANDLER = "auditor.plain"
"""Name under which `_replace_unencodable` is registered with `codecs`."""
ASCII_EQUIVALENTS = {"\u202f": " ", "\u2212": "-", "\u2013": "-", "\u2026": "..."}

_CONVERSION_ERROR = re.compile(r"Value error, |Input should be ([^,\n]*)(?:, unable to [^\n]*)?")
"""Pydantic's message, as the command-line library shows it, for an option's value of the wrong type."""

COMMAND_GC_THRESHOLDS = (500_000, 50, 1000)

_interrupts: list[BaseException] = []
"""Interrupts that `_interrupt_at_once` raised: where one is lost while a module is loaded, other errors follow."""
unhandled_errors: list[BaseException] = []
"""Errors that the last-resort handler reported in this process. A test that leaves one here fails."""


def main() -> None:
    """Run the command line, and exit with its exit code."""
    _ensure_standard_streams()
    is_debugging = "--debug" in sys.argv or os.environ.get(DEBUG_VARIABLE, "0") not in ("", "0")
    _interrupt_at_once()
    try:
        sys.argv[1:] = _move_program_options([argument for argument in sys.argv[1:] if argument != "--debug"])
        if (code := _run_app()) == INTERRUPTED:  # typer returns this code for an interrupt, and prints nothing
            raise KeyboardInterrupt
        sys.stdout.flush()
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - the last resort
        is_unexpected = not isinstance(error, (AuditorError, BaseExceptionGroup))
        cause = _interrupts[-1] if _interrupts and is_unexpected else _root_cause(error)
        code = _report_error(cause, is_debugging=is_debugging)
    sys.exit(code)


def _interrupt_at_once() -> None:
    """Let Ctrl-C, SIGTERM and a closed terminal raise KeyboardInterrupt wherever the program is.

    asyncio replaces only Python's own handler: by one that waits for a task, which may be loading weights for seconds.
    """

    def raise_interrupt(*_: object) -> None:
        _interrupts.append(KeyboardInterrupt())
        raise _interrupts[-1]

    with suppress(ValueError):  # not in the main thread, where no signal arrives
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            # Not if it is ignored, as by nohup.
            if number is not None and signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL):
                signal.signal(number, raise_interrupt)


def _move_program_options(words: list[str]) -> list[str]:
    """Move the program's own option before the command's name: it is accepted after it too, as `--debug` is."""
    from auditor.input_files import LIMIT_OPTION

    end = words.index("--") if "--" in words else len(words)
    for position, word in enumerate(words[:end]):
        length = 2 if word == LIMIT_OPTION else int(word.startswith(f"{LIMIT_OPTION}="))
        if length:
            return words[position : position + length] + words[:position] + words[position + length :]
    return words


def _run_app() -> int:
    """Run the command of `sys.argv`; returns its exit code."""
    # Pydantic would search all installed packages for plugins, and these would see what is validated.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # The threads of numpy's linear algebra wait in a loop for matrices that are too small to be shared out: a fifth of
    # the CPU time of a report.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _reduce_garbage_collections()

    _require_working_directory()
    from auditor.cli.app import build_app
    from auditor.input_files import remember_inputs

    # Not standalone: usage errors are then raised, and are sanitized before they are printed.
    with remember_inputs():
        code: object = build_app("")(prog_name="auditor", standalone_mode=False)
    return code if isinstance(code, int) else 0


def _reduce_garbage_collections() -> None:
    """Make garbage collections rare until the process ends, and leave out the interpreter's last ones.

    Importing modules leaves no cycles behind: searching for them was a fifth of a short command.
    """
    gc.set_threshold(*COMMAND_GC_THRESHOLDS)
    atexit.register(gc.freeze)


def _ensure_standard_streams() -> None:
    """Open closed standard streams, and make all three accept any character.

    A file opened while a standard stream is closed would get its descriptor, and printed text would go into that file.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if not _is_descriptor_open(number):
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - until exit
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=ENCODING_ERROR_HANDLER)


def _replace_unencodable(error: UnicodeError) -> tuple[str | bytes, int]:
    """Encoding error handler: a readable replacement for a space, minus sign or dash, and an escape for any other."""
    if isinstance(error, UnicodeEncodeError):
        error.end = error.start + 1
        if (char := error.object[error.start]) in ASCII_EQUIVALENTS:
            return ASCII_EQUIVALENTS[char], error.end
    return codecs.backslashreplace_errors(error)


codecs.register_error(ENCODING_ERROR_HANDLER, _replace_unencodable)


def _is_descriptor_open(descriptor: int) -> bool:
    """Whether a file descriptor of this process is open."""
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _require_working_directory() -> None:
    """Raise UsageError if the working directory no longer exists, unless only help or the version is printed."""
    if {"-h", "--help", "--version"} & set(sys.argv):
        return
    try:
        os.getcwd()
    except OSError:
        raise UsageError(
            "the working directory was deleted or moved, so no file can be found.",
            "Change to a directory that exists, for example with: cd ~",
        ) from None


# --- errors -----------------------------------------------------------------------------------------------------


def _root_cause(error: BaseException) -> BaseException:
    """The error to report: the cause of a `typer.Abort`, or one member of an exception group.

    Of a group this is an interrupt, else the first unexpected error, else the first error.
    """
    typer = sys.modules.get("typer")  # not imported for an interrupt while modules are loaded
    if typer and isinstance(error, typer.Abort) and error.__cause__ is not None:
        cause: BaseException = error.__cause__
        return cause
    if not isinstance(error, BaseExceptionGroup):
        return error
    members = [_root_cause(member) for member in error.exceptions]
    interrupts: list[BaseException] = [m for m in members if isinstance(m, KeyboardInterrupt)]
    # By priority: interrupts, then unexpected errors, then all others; of these the first.
    return (
        interrupts
        or [
            m
            for m in members
            if not (isinstance(m, (AuditorError, KeyboardInterrupt, SystemExit)) or _is_environmental(m))
        ]
        or members
    )[0]


def _is_environmental(error: BaseException) -> bool:
    """Whether files, permissions or disks cause an error; see `ENVIRONMENT_ERRNOS`."""
    return isinstance(error, OSError) and error.errno in ENVIRONMENT_ERRNOS


def _report_error(error: BaseException, *, is_debugging: bool) -> int:
    """Print the error in one line, and return the exit code."""
    try:
        return _print_error(error, is_debugging=is_debugging)
    except OSError:  # standard error is closed or full
        _discard_stream(sys.stderr)
        return 1


def _print_error(error: BaseException, *, is_debugging: bool) -> int:
    """Print the error for the user, and return the exit code; unexpected errors are kept in `unhandled_errors`."""
    if isinstance(error, KeyboardInterrupt) and not is_debugging:
        print("stopped.", file=sys.stderr, flush=True)  # at once: importing what prints other messages takes a while
        return INTERRUPTED
    from auditor.console.output import print_error, print_message

    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    if isinstance(error, BrokenPipeError):  # `auditor … | head`: the reader closed the pipe
        _discard_stream(sys.stdout)
        return 1
    if is_debugging:
        _print_traceback(error)
    if isinstance(error, KeyboardInterrupt):
        print_message("stopped.")
        return INTERRUPTED
    if isinstance(error, AuditorError):
        print_error(error)
        return error.exit_code
    if _is_usage_error(error):
        return _print_usage_error(error)
    if isinstance(error, OSError) and _is_environmental(error):
        from auditor.text_safety import truncate_text

        filename = None if error.filename is None else truncate_text(str(error.filename), MAX_MESSAGE_LENGTH)
        failed_target = filename or "a file or standard output"
        print_error(
            AuditorError(f"{failed_target}: {error.strerror}.", "Check the name, the permissions and the free space.")
        )
        _discard_stream(sys.stdout)
        return 1
    unhandled_errors.append(error)
    print_message(
        f"{UNEXPECTED_ERROR_PREFIX}: {_describe_error(error)}. How to fix: Run the command again with --debug, and "
        "report the output."
    )
    return 1


def _describe_error(error: BaseException) -> str:
    """The error's class, and its message if it has one: in one line, redacted and truncated."""
    from auditor.redaction import redact
    from auditor.text_safety import truncate_text

    try:
        message = redact(" ".join(str(error).split()).rstrip("."))  # before truncation, which could cut a secret in two
    except Exception:  # noqa: BLE001 - an error whose __str__ fails
        message = ""
    return f"{type(error).__name__}: {truncate_text(message, MAX_MESSAGE_LENGTH)}" if message else type(error).__name__


def _print_traceback(error: BaseException) -> None:
    """Print an error's traceback to standard error; a failure to format it is ignored."""
    from auditor.console.output import print_message

    with suppress(Exception):
        print_message("".join(traceback.format_exception(error)).rstrip())


def _is_usage_error(error: BaseException) -> bool:
    """Whether the command-line library raised the error: an unknown option, a missing argument."""
    from typer import BadParameter

    return isinstance(error, BadParameter.__mro__[2])  # ClickException, which typer does not export


def _print_usage_error(error: Any) -> int:
    """Print an error of the command-line library, and return its exit code; pydantic's phrases are replaced."""
    from auditor.console.output import print_message

    text = StringIO()
    error.show(file=text)
    print_message(_CONVERSION_ERROR.sub(_reword_conversion_error, text.getvalue()).rstrip())
    return int(error.exit_code)


def _reword_conversion_error(match: re.Match[str]) -> str:
    """Reword pydantic's phrase, such as "Input should be a valid integer" to "must be a whole number".

    The prefix "Value error, ", which has no first group (the expected type), is removed.
    """
    if match[1] is None:
        return ""
    return f"must be {match[1].replace('a valid', 'a').replace('integer', 'whole number')}"


def _discard_stream(stream: Any) -> None:
    """Redirect a stream to the null device, so that Python does not fail to flush its buffer at exit."""
    with suppress(OSError, ValueError, AttributeError):
        null_descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_descriptor, stream.fileno())
        os.close(null_descriptor)


if __name__ == "__main__":
    main()
