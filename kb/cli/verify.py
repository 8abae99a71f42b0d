"""`kb verify`: compare the claims of incidents with clones of the projects."""

from __future__ import annotations

from pathlib import Path

import click

from kb.cli import incidents_option
from kb.cli.exit_codes import of_check
from kb.cli.terminal import put, put_json, say
from kb.cli.unknown import record_file
from kb.containment import contained
from kb.corpus.directories import IncidentDirectories
from kb.incident import Incident
from kb.settings import load_settings


@click.command("verify")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--source",
    "sources",
    multiple=True,
    required=True,
    metavar="NAME=CLONE",
    help="A project by its name in the incidents, and the directory of its clone. Repeatable.",
)
@click.option("--write", is_flag=True, help="Note under `checked` in each file what was looked at.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a claim, a line each.")
@incidents_option
def command(
    ids: tuple[str, ...],
    sources: tuple[str, ...],
    write: bool,
    as_json: bool,
    incidents: tuple[Path, ...],
) -> None:
    """Look in local clones for the changes, messages and options that incidents name.

    Without ID, all incidents are compared that speak of a project. Nothing is fetched: run
    `git fetch --tags` in a clone first. A message that a project composes of parts is not found.

    Exit code: 0 no release is wrong, 1 some is, 2 usage error.
    """
    from kb.contribute.verify import Clone, Standing, note_down, verify
    from kb.views.verify import finding_lines, summary, to_json

    directories = load_settings(incidents).incidents
    clones = [Clone(*_named(source)) for source in sources]
    files = _files(ids, directories)
    wrong = 0
    for clone in clones:
        findings = list(verify([record for _path, record in files], clone))
        lines = map(to_json, findings) if as_json else finding_lines(findings)
        for line in lines:
            (put_json if as_json else put)(line)
        say(summary(findings, clone))
        wrong += sum(one.standing is Standing.WRONG for one in findings)
        for path, record in files if write else ():
            own = [one for one in findings if one.record == record.id]
            with contained(f"{path} is not changed", say):
                if own:
                    note_down(path, own, clone)
    raise click.exceptions.Exit(of_check(good=not wrong))


def _named(source: str) -> tuple[str, Path]:
    name, sign, path = source.partition("=")
    if not (name and sign and path):
        raise click.UsageError("write the name and the directory: --source nccl=../nccl")
    return name, Path(path)


def _files(ids: tuple[str, ...], directories: tuple[str, ...]) -> list[tuple[Path, Incident]]:
    """The incidents with these ids, or all. A file that is no incident is left out, and said."""
    advice = "run kb list to see all records"
    chosen = [record_file(one, directories, advice) for one in ids]
    found = []
    for file in chosen or IncidentDirectories(directories).files():
        with contained(f"{file.name} is left out", say):
            record = file.read()
            if isinstance(record, Incident):
                found.append((file.path, record))
    return found
