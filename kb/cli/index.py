"""`kb index`: build or update the index."""

from __future__ import annotations

from pathlib import Path

import click

from index.documents import Changes
from kb.cli import incidents_option
from kb.cli.terminal import progress, put, say
from kb.corpus.sync import (
    answers_sync,
    curated_sync,
    guides_sync,
    index_path,
    load_in_background,
)
from kb.settings import load_settings


@click.command("index")
@click.option("--rebuild", is_flag=True, help="Delete the index and build it from scratch.")
@incidents_option
def command(rebuild: bool, incidents: tuple[Path, ...]) -> None:
    """Update the index. Only changed passages are encoded again.

    `kb ask` does this automatically when incidents have changed.
    """
    settings = load_settings(incidents)
    encoder = load_in_background(settings.model)
    with progress("Building the index") as report:
        changes, problems = curated_sync(settings, encoder, report, say).update(rebuild=rebuild)
        guides, wrong = guides_sync(settings, encoder, report, say).update(rebuild=rebuild)
        problems += wrong
        answers, _none = answers_sync(settings, encoder, report, say).update(rebuild=rebuild)
    for problem in problems:
        say(str(problem))
    put(_said(changes, "incidents"))
    put(_said(guides, "checks and playbooks"))
    put(_said(answers, "answers"))
    put(f"index: {index_path(settings)}")
    if problems:
        say(f"{len({problem.path for problem in problems})} files skipped; fix them as shown")


def _said(changes: Changes, what: str) -> str:
    total = changes.added + changes.changed + changes.unchanged
    return (
        f"{total} {what}: {changes.added} added, {changes.changed} changed,"
        f" {changes.removed} removed, {changes.unchanged} unchanged;"
        f" {changes.encoded} passages encoded"
    )
