"""`kb diff`: what a change of the incidents does."""

from __future__ import annotations

from pathlib import Path

import click

from kb.cli import incidents_option
from kb.cli.exit_codes import of_check
from kb.cli.terminal import put, say
from kb.corpus.directories import IncidentDirectories
from kb.problem import skipped
from kb.settings import load_settings


@click.command("diff")
@click.argument("base", metavar="BASE")
@incidents_option
def command(base: str, incidents: tuple[Path, ...]) -> None:
    """Compare how all evidence is ranked before and after a change of the incidents.

    BASE is a git revision, or a directory with the incidents before the change.

    Exit code: 0 no evidence ranks its record worse than before, 1 some does, 2 usage error.
    """
    from kb.contribute.diff import compare
    from kb.contribute.git_base import library_at
    from kb.evidence.secrets import without_secrets
    from kb.views.diff import diff_lines

    library = IncidentDirectories(load_settings(incidents).incidents)
    with library_at(base, library) as before:
        comparison = without_secrets(compare(before, library))
    for line in diff_lines(comparison):
        put(line)
    if comparison.wrong:
        say(skipped(comparison.wrong))
    good = not any(move.is_worse for move in comparison.moves)
    raise click.exceptions.Exit(of_check(good=good))
