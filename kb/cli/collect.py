"""`kb collect`: a script that gathers evidence on the nodes."""

from __future__ import annotations

from pathlib import Path

import click

from kb.cli import NewFile, incidents_option
from kb.cli.case import open_service
from kb.cli.terminal import put
from kb.cli.unknown import record_file
from kb.collect import Choice, choose, to_script
from kb.errors import KbError
from kb.files import check_new, write_new
from kb.guides import Record
from kb.service.service import result_of
from kb.settings import load_settings


@click.command("collect")
@click.option(
    "--for",
    "identifier",
    metavar="ID",
    help="Take the checks of this playbook, incident or check; else what a restart destroys.",
)
@click.option(
    "-o",
    "--output",
    type=NewFile(or_stdout=True),
    metavar="FILE",
    help="Write to FILE; it must not exist yet. - is stdout.",
)
@incidents_option
def command(identifier: str | None, output: Path | None, incidents: tuple[Path, ...]) -> None:
    """Write a shell script that gathers evidence on the nodes before a restart.

    It needs nothing but sh, and runs checks that only read, each with a time limit; with --for also
    those that stop a process for a moment. It leaves one small archive a host, with secrets masked.
    Its first lines say how to run it on many nodes.

    \b
    kb collect --for hang-mid-training > collect.sh
    clush -w NODES 'cd /shared/dir && sh collect.sh'
    kb ask -f kb-*.tar.gz
    """
    if output:
        check_new(output)
    settings = load_settings(incidents)
    record = None if identifier is None else _record(identifier, settings.incidents)
    with open_service(settings) as service:
        guides = result_of(service.guides())
    choice = choose(guides, record)
    if not choice.taken:
        raise KbError(_nothing(record, choice))
    purpose = f"{record.id}: {record.title}" if record else "what a restart destroys"
    script = to_script(choice, purpose)
    if output:
        put(str(write_new(output, script.encode())))
    else:
        put(script, end="")


def _record(identifier: str, directories: tuple[str, ...]) -> Record:
    advice = "run kb list --kind playbook to see what it can be for"
    return record_file(identifier, directories, advice).read()


def _nothing(record: Record | None, choice: Choice) -> str:
    if record is None:
        return "there are no checks; run: kb doctor"
    if not choice.left:
        return f"no check leads to `{record.id}`; run kb collect without --for"
    left = choice.left[0]
    why = left.why.removesuffix(".")
    return f"`{left.check.id}` is left to you, because {why}; run: kb show {left.check.id}"
