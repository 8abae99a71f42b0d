"""`kb show`: one record."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from kb.cli import incidents_option
from kb.cli.unknown import record_file
from kb.corpus.directories import RecordDirectories
from kb.errors import KbError
from kb.settings import load_settings


def _complete_id(
    ctx: click.Context, _parameter: click.Parameter, start: str
) -> list[CompletionItem]:
    """The ids that begin so. A completion has no place to tell what is wrong with the settings, and
    the shell shows an id as it is, so an odd name of a file is left out."""
    try:
        settings = load_settings(ctx.params.get("incidents") or ())
        files = RecordDirectories(settings.incidents).all_files()  # reads none of them
    except KbError:
        return []
    names = (file.path.stem for file in files)
    return [CompletionItem(name) for name in names if name.startswith(start) and name.isprintable()]


@click.command("show")
@click.argument("identifier", metavar="ID", shell_complete=_complete_id)
@incidents_option
def command(identifier: str, incidents: tuple[Path, ...]) -> None:
    """Show the incident, check or playbook ID; in a pipe, print the Markdown of its file."""
    advice = "run kb list to see all records"
    file = record_file(identifier, load_settings(incidents).incidents, advice)
    from kb.cli.terminal import put, show  # a completion does not wait for it

    if not sys.stdout.isatty():
        put(file.source().decode("utf-8", "replace"), end="")
        return
    from kb.views.record import render

    show(render(file.read()))
