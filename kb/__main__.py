"""The `kb` command."""

from __future__ import annotations

import signal
import sys

import click

from kb.cli import cli


def main() -> None:
    """Run `kb`. Errors that a user can cause end in one sentence and exit code 2."""
    # When the reader of a pipe goes away (`kb list | head`), end quietly like any other filter.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        code = cli.main(prog_name="kb", standalone_mode=False)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.ClickException as error:
        error.show()
        code = 2
    except click.Abort:
        code = 130
    sys.exit(code or 0)


if __name__ == "__main__":
    main()
