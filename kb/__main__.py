"""The `kb` command."""

from __future__ import annotations

import os
import sys

import click

from kb.cli import cli


def main() -> None:
    """Run `kb`. Errors that a user can cause end in one sentence and exit code 2."""
    try:
        code = cli.main(prog_name="kb", standalone_mode=False)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.ClickException as error:
        error.show()
        code = 2
    except click.Abort:
        code = 130
    except BrokenPipeError:
        # The reader of a pipe went away; Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code or 0)


if __name__ == "__main__":
    main()
