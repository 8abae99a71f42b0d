"""`kb tui`: the screen. The package `tui` is found by its entry point: `kb` does not import it."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from pathlib import Path

import click

from kb.cli import NamedPath, follow_option, incidents_option
from kb.errors import KbError
from kb.settings import load_settings


@click.command("tui")
@click.argument("paths", nargs=-1, type=NamedPath(), metavar="[PATH]...")
@follow_option
@incidents_option
def command(paths: tuple[Path, ...], follow: bool, incidents: tuple[Path, ...]) -> None:
    """Open the terminal UI: paste an error, read what is known about it, discuss it.

    PATH is a log file or a directory with the logs of one job. Without PATH, kb reads piped
    input, if any.
    """
    if not sys.stdout.isatty():
        raise KbError("the terminal UI needs a terminal; in a pipe use kb ask")
    (face,) = entry_points(group="incident_kb.faces", name="tui")
    code: int = face.load()(load_settings(incidents), paths, follow)
    raise click.exceptions.Exit(code)
