"""Entry point of the command line: runs a command, turns errors into a line and an exit code."""

from __future__ import annotations

import errno
import sys
import traceback

try:
    import click

    from streaming_moments.errors import StreamingMomentsError, Unfinished
    from streaming_moments.pipelines.command_line.every_command import DEBUG, UNTIL_CLOSED, cli
    from streaming_moments.pipelines.exit_codes import ExitCode
    from streaming_moments.pipelines.terminal import event_logger, shown, tell
    from streaming_moments.printing.remedies import of_commands
except ModuleNotFoundError as error:
    lacked = (error.name or "").partition(".")[0]
    if lacked in ("", "streaming_moments"):
        raise
    sys.exit(
        f"error: the command line needs the package {lacked}, which is not installed; run "
        "`pip install streaming-moments` without --no-deps"
    )

# errors of paths, disks and limits of the system, which are not bugs of the package
_OF_THE_MACHINE = (
    errno.EACCES,
    errno.EDQUOT,
    errno.EEXIST,
    errno.EISDIR,
    errno.EMFILE,
    errno.ENAMETOOLONG,
    errno.ENOENT,
    errno.ENOSPC,
    errno.ENOTDIR,
    errno.EPERM,
    errno.EROFS,
)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit.

    Wrong input prints one line and exits with code 2. A bug of the package prints one line and
    exits with code 1. `--debug` before the command adds the traceback.
    """
    given = sys.argv[1:] if arguments is None else arguments
    try:
        code = cli.main(args=given, prog_name="streaming-moments", standalone_mode=False)
    except click.exceptions.Abort:
        code = _interrupted()
    except KeyboardInterrupt:
        code = _interrupted()
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        where = context.command_path if context else "streaming-moments"
        said = error.format_message().rstrip(".")
        said = said if said.endswith("?") else f"{said}."
        code = _failed(f"error: {said} See `{where} --help`.", given, ExitCode.INPUT)
    except Unfinished as error:
        code = _failed(f"unfinished: {error.said(of_commands)}", given, ExitCode.UNFINISHED)
    except StreamingMomentsError as error:
        code = _failed(f"error: {error.said(of_commands)}", given, ExitCode.INPUT)
    except Exception as error:
        code = _unexpected(error, given)
    sys.exit(code or 0)


def _unexpected(error: Exception, arguments: list[str]) -> int:
    if isinstance(error, OSError) and error.errno in _OF_THE_MACHINE:
        where = f" ({error.filename})" if error.filename else ""
        line = f"error: {error.strerror}{where}; check the path, permissions and free space"
        return _failed(line, arguments, ExitCode.INPUT)
    name = type(error).__name__
    line = (
        f"bug in streaming-moments ({name}: {error}); please report it with the output of "
        "`streaming-moments --debug ...`"
    )
    return _failed(line, arguments, ExitCode.FAULT)


def _failed(message: str, arguments: list[str], code: int) -> int:
    # if a server has started this command, log an event instead of a line for people
    told = event_logger().error if UNTIL_CLOSED in arguments else tell
    for line in traceback.format_exc().splitlines() if DEBUG in arguments[:1] else ():
        told(shown(line))
    told(shown(" ".join(message.split())))
    return code


def _interrupted() -> int:
    tell("interrupted: all commits so far are stored; run the same command again to continue")
    return ExitCode.INTERRUPTED
