"""`kb lint`: check incident files."""

from __future__ import annotations

from pathlib import Path

import click

from kb.cli import incidents_option
from kb.contribute.lint import lint
from kb.library import Library
from kb.settings import load_settings


@click.command("lint")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@incidents_option
def command(paths: tuple[Path, ...], incidents: tuple[Path, ...]) -> None:
    """Check incident files or directories of them; without PATH, the whole library.

    Exit code: 0 no problem, 1 problems found, 2 wrong use.
    """
    count, problems = lint(paths, Library(load_settings(incidents).incidents))
    for problem in problems:
        click.echo(f"{problem}\n")
    wrong = len({problem.path for problem in problems})
    click.echo(f"{count} files checked, {len(problems)} problems in {wrong} files", err=True)
    raise click.exceptions.Exit(1 if problems else 0)
