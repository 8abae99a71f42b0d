"""`kb` without a command: the terminal UI, or, where the output is not a terminal, `kb ask`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kb.cli import NamedPath, incidents_option


@click.command("start")
@click.argument("paths", nargs=-1, type=NamedPath(), metavar="[PATH]...")
@incidents_option
@click.pass_context
def command(ctx: click.Context, paths: tuple[Path, ...], incidents: tuple[Path, ...]) -> None:
    """Open the terminal UI with PATH, or with piped input; in a pipe, answer like kb ask -f PATH.

    PATH is a log file or a directory with the logs of one job.
    """
    if sys.stdout.isatty():
        from kb.cli.tui import command as answer
    else:
        from kb.cli.ask import command as answer
    ctx.invoke(answer, paths=paths, incidents=incidents)
