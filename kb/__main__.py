"""The `kb` command."""

from __future__ import annotations

import os
import sys

import click

from kb.cli import cli
from kb.cli.exit_codes import ExitCode


def main() -> None:
    """Run `kb`. Errors that a user can cause end in one sentence and exit code 2."""
    _open_missing_streams()
    try:
        code = cli.main(prog_name="kb", standalone_mode=False)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.ClickException as error:
        error.show()
        code = ExitCode.WRONG_USE
    except click.Abort:
        code = ExitCode.INTERRUPTED
    except SystemExit:  # how click ends when the reader of a pipe goes away (`kb list | head`)
        code = ExitCode.PIPE_CLOSED
    except OSError as error:  # the terminal is gone, the disk under a redirection is full, ...
        click.ClickException(str(error)).show()
        code = ExitCode.WRONG_USE
    sys.exit(code or 0)


def _open_missing_streams() -> None:
    """Replace a stream that the caller closed (`<&-`) by the null device."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115


if __name__ == "__main__":
    main()
