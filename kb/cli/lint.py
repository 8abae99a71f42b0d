"""`kb lint`: check incident files."""

from __future__ import annotations

from pathlib import Path

import click

from kb.cli import NamedPath, incidents_option
from kb.cli.exit_codes import of_check
from kb.cli.terminal import put, put_json, say
from kb.containment import contained
from kb.contribute.lint import chosen_files, lint
from kb.corpus.directories import IncidentDirectories
from kb.evidence.secrets import without_secrets
from kb.problem import Severity
from kb.settings import load_settings
from kb.views.lint import FORMATS


@click.command("lint")
@click.argument("paths", nargs=-1, type=NamedPath(), metavar="[PATH]...")
@click.option("--fix", is_flag=True, help="First fix what can be fixed without losing text.")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    default="text",
    help="Output format; `github` annotates the lines of a pull request.",
)
@incidents_option
def command(paths: tuple[Path, ...], fix: bool, form: str, incidents: tuple[Path, ...]) -> None:
    """Check incident files or directories of them; without PATH, all incidents in use.

    Exit code: 0 no errors (warnings may be shown), 1 errors found, 2 usage error.
    """
    if fix and not paths:
        raise click.UsageError("--fix rewrites files, so it needs PATH: kb lint --fix PATH")
    library = IncidentDirectories(load_settings(incidents).incidents)
    if fix:
        _fix(paths)
    count, problems = without_secrets(lint(paths, library))
    write = put_json if form == "json" else put
    write(FORMATS[form](problems, count), end="")
    wrong = len({problem.path for problem in problems})
    say(f"{count} files checked, {len(problems)} problems in {wrong} files")
    good = all(problem.severity is not Severity.ERROR for problem in problems)
    raise click.exceptions.Exit(of_check(good=good))


def _fix(paths: tuple[Path, ...]) -> None:
    from kb.contribute.lint.fix import fix_file

    for file in chosen_files(paths):
        with contained(f"{file.name} is not changed", say):
            for change in fix_file(file.path):
                say(f"{file.name}: {change}")
