"""`kb tui`: the screen. The package `tui` is found by its entry point: `kb` does not import it."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kb.cli import NamedPath, follow_option, incidents_option
from kb.cli.case import resume_option
from kb.cli.terminal import say
from kb.errors import KbError
from kb.settings import Settings, load_settings

if TYPE_CHECKING:
    from kb.sessions import Session


@click.command("tui")
@click.argument("paths", nargs=-1, type=NamedPath(), metavar="[PATH]...")
@follow_option
@resume_option
@click.option("--in-browser", is_flag=True, hidden=True, help="As `kb serve --screen` starts it.")
@incidents_option
def command(
    paths: tuple[Path, ...] = (),
    follow: bool = False,
    incidents: tuple[Path, ...] = (),
    resume: str | None = None,
    in_browser: bool = False,
) -> None:
    """Open the terminal UI: paste an error, read what is known about it, discuss it.

    PATH is a log file or a directory with the logs of one job. Without PATH, kb reads piped
    input, if any.
    """
    if not (in_browser or sys.stdout.isatty()):
        raise KbError("the terminal UI needs a terminal; in a pipe use kb ask")
    if resume is not None and paths:
        raise click.UsageError("--resume goes on with a case; leave out PATH")
    settings = load_settings(incidents)
    (face,) = entry_points(group="incident_kb.faces", name="tui")
    code: int = face.load()(settings, paths, follow, _session(settings, resume), in_browser)
    raise click.exceptions.Exit(code)


def _session(settings: Settings, resume: str | None) -> Session | None:
    """The case to go on with."""
    if resume is None:
        return None
    from kb.sessions import Sessions, session_to_resume

    return session_to_resume(Sessions(settings, say), resume)
