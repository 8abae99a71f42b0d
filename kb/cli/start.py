"""`kb` without a command: the terminal UI, or, where the output is not a terminal, `kb ask`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kb.cli import NamedPath, follow_option, incidents_option
from kb.errors import KbError


@click.command("start")
@click.argument("paths", nargs=-1, type=NamedPath(), metavar="[PATH]...")
@follow_option
@incidents_option
@click.pass_context
def command(
    ctx: click.Context, paths: tuple[Path, ...], follow: bool, incidents: tuple[Path, ...]
) -> None:
    """Open the terminal UI with PATH, or with piped input; in a pipe, answer like kb ask -f PATH.

    PATH is a log file or a directory with the logs of one job.
    """
    follow = follow or bool(ctx.obj)
    if sys.stdout.isatty():
        from kb.cli.tui import command as tui

        ctx.invoke(tui, paths=paths, follow=follow, incidents=incidents)
    elif follow:
        raise KbError("to follow a log, kb needs a terminal; in a pipe use kb ask")
    else:
        from kb.cli.ask import command as ask

        ctx.invoke(ask, paths=paths, incidents=incidents)
