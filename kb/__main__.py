"""The `kb` command."""

from __future__ import annotations

import os
import sys

import click

from kb.cli import cli
from kb.cli.exit_codes import ExitCode
from kb.cli.process import prepare


def main() -> None:
    """Run `kb`. Errors that a user can cause end in one sentence and exit code 2."""
    prepare()
    try:
        code = cli.main(prog_name="kb", standalone_mode=False)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.ClickException as error:
        code = _tell(error)
    except click.Abort:
        code = ExitCode.INTERRUPTED
    except SystemExit:  # how click ends when the reader of a pipe goes away (`kb list | head`)
        code = ExitCode.PIPE_CLOSED
    except OSError as error:  # the terminal is gone, the disk under a redirection is full, ...
        code = _tell(click.ClickException(str(error)))
    except (MemoryError, ImportError) as error:  # a library that finds no memory cannot be loaded
        sentence = (
            f"not enough memory, or a damaged installation ({error or 'out of memory'});"
            " allow kb 1 GB (ulimit -v), or reinstall incident-kb"
        )
        click.ClickException(sentence).show()  # without another import
        code = ExitCode.WRONG_USE
    except (LookupError, ValueError):
        if "_KB_COMPLETE" not in os.environ:
            raise
        code = _tell(
            click.ClickException("COMP_WORDS and COMP_CWORD are odd; run: kb completion --help")
        )
    sys.exit(code or 0)


def _tell(error: click.ClickException) -> ExitCode:
    from kb.cli.terminal import tell

    tell(error)
    return ExitCode.WRONG_USE


if __name__ == "__main__":
    main()
