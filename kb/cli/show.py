"""`kb show`: one incident."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

import click

from kb.cli import incidents_option
from kb.corpus.directories import IncidentDirectories
from kb.errors import CorpusError
from kb.settings import load_settings


@click.command("show")
@click.argument("identifier", metavar="ID")
@incidents_option
def command(identifier: str, incidents: tuple[Path, ...]) -> None:
    """Show the incident ID; in a pipe, print the Markdown of its file unchanged."""
    library = IncidentDirectories(load_settings(incidents).incidents)
    file = library.find(identifier)
    if file is None:
        raise CorpusError(f"unknown incident `{identifier}`{_nearest(identifier, library)}")
    if not sys.stdout.isatty():
        click.echo(file.source(), nl=False)
        return
    from kb.cli.terminal import show
    from kb.views.record import render

    show(render(file.read()))


def _nearest(identifier: str, library: IncidentDirectories) -> str:
    names = difflib.get_close_matches(
        identifier, [file.path.stem for file in library.files()], n=3, cutoff=0.5
    )
    return f"; did you mean {', '.join(names)}?" if names else "; run kb list to see all incidents"
