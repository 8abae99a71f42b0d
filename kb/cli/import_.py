"""`kb import`: the team's own backlog becomes searchable leads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kb.cli import NamedPath, NewFile
from kb.cli.terminal import progress, put, say
from kb.errors import KbError, LogError, unknown
from kb.service.service import result_of
from kb.settings import load_settings

if TYPE_CHECKING:
    from kb.backlog.importing import Summary
    from kb.backlog.store import BacklogStore


_MAX_GAPS = 30
"""Cases that are listed; nobody writes up more at once."""


@click.command("import")
@click.argument("sources", nargs=-1, type=NamedPath(), metavar="[SOURCE]...")
@click.option("--into", "name", metavar="NAME", help="The import to fill or to go on with.")
@click.option(
    "--map",
    "columns",
    multiple=True,
    metavar="FIELD=COLUMN",
    help="Which column of a table holds a field, such as title=Summary; repeatable.",
)
@click.option(
    "--bundle",
    type=NewFile(),
    metavar="FILE",
    help="Write the import into one file; `kb import FILE --into NAME` reads it elsewhere.",
)
@click.option("--gaps", is_flag=True, help="List what was reported most often and has no record.")
@click.option("--forget", metavar="NAME", help="Remove an import and all its leads.")
def command(
    sources: tuple[Path, ...],
    name: str | None,
    columns: tuple[str, ...],
    bundle: Path | None,
    gaps: bool,
    forget: str | None,
) -> None:
    """Make closed issues, tickets, postmortems and FAQs searchable, as leads below the records.

    SOURCE is a file or a folder: exports of GitHub, GitLab, Jira and others, Markdown, HTML, CSV.
    Do it again to take in what changed. It may be stopped at any time: run the same command to go
    on. Nothing is fetched; docs/import.md has the command for each tracker.
    """
    if forget:
        _forget(forget)
    elif name and bundle:
        _write_bundle(name, bundle)
    elif name and gaps:
        _list_gaps(name)
    elif sources and name:
        _take(sources, name, _mapping(columns))
    elif bundle or gaps:
        option = "--bundle FILE" if bundle else "--gaps"
        raise click.UsageError(f"say of which import: kb import {option} --into NAME")
    else:
        raise click.UsageError("say what to import, and its name: kb import SOURCE... --into NAME")


def _write_bundle(name: str, bundle: Path) -> None:
    from kb.backlog.bundle import write_bundle
    from kb.backlog.store import BacklogStore

    with BacklogStore.open(_known(name)) as store:
        put(f"{bundle}: {write_bundle(store, bundle):,} reports of `{name}`")


def _list_gaps(name: str) -> None:
    """Most frequent first: how often, how many days it took, the id to draft it from, the title."""
    from kb.backlog.store import BacklogStore
    from kb.cli.case import open_service

    with BacklogStore.open(_known(name)) as store, open_service(load_settings()) as service:
        found = result_of(service.gaps(store))
    for gap in found[:_MAX_GAPS]:
        took = "no remedy" if gap.days is None else f"{gap.days:.0f} days"
        put(f"{gap.seen:>5} times  {took:>9}  {gap.report.id}  {gap.report.title}")
    if found:
        say("to write one up: kb new --from-report ID")
    else:
        say(f"`{name}` has no case without a record that was reported more than once")


def _known(name: str) -> Path:
    """The file of an import that there is.

    Raises:
        KbError: there is none of this name; says which are close.
    """
    from kb.backlog.library import path_of
    from kb.paths import backlogs

    path = path_of(name)
    if path not in backlogs():
        names = [one.stem for one in backlogs()]
        advice = f"there is {', '.join(names)}" if names else "there is none"
        raise KbError(unknown("import", name, names, advice))
    return path


def _take(sources: tuple[Path, ...], name: str, mapping: Mapping[str, str]) -> None:
    from index.encoder import load_encoder
    from kb.backlog.bundle import is_bundle, read_bundle
    from kb.backlog.importing import Importer, encode_missing, filling
    from kb.backlog.library import path_of

    path = path_of(name)
    for source in sources:
        if not source.exists():
            raise LogError(source, "no such file or directory")
    bundles = list(filter(is_bundle, sources))
    with filling(path) as store:
        try:
            with progress("Reading reports") as report:
                importer = Importer(store, say, report, mapping)
                importer.take([source for source in sources if source not in bundles])
                for bundle in bundles:
                    put(f"{bundle}: {read_bundle(bundle, store):,} reports")
            with progress("Encoding them") as report:
                encode_missing(store, load_encoder(load_settings().model), report)
        except KbError:
            raise
        except BaseException:  # Ctrl-C, or a signal
            say(f"stopped; {store.size()} reports are in `{name}`: the same command goes on")
            raise
        if importer.summary.is_in_vain and not bundles:
            raise KbError(f"nothing was imported; {_left_out(importer.summary)}")
        _tell(importer.summary, store)


def _tell(summary: Summary, store: BacklogStore) -> None:
    """What was taken, and what was left out and why."""
    counts = (
        f"{summary.added:,} added, {summary.changed:,} changed, {summary.removed:,} removed,"
        f" {summary.unchanged:,} unchanged"
    )
    put(f"{store.name}: {store.size():,} reports; {counts}")
    if summary.unchanged_sources:
        put(f"not read again, as nothing changed: {summary.unchanged_sources:,} sources")
    if summary.skipped or summary.empty:
        put(_left_out(summary))


def _left_out(summary: Summary) -> str:
    reasons = [f"{count:,} {why}" for why, count in summary.skipped.most_common()]
    if summary.empty:
        reasons.append(f"{summary.empty:,} without anything to search for")
    return f"left out: {', '.join(reasons)}"


def _forget(name: str) -> None:
    from kb.backlog.importing import forget, locked

    path = _known(name)
    with locked(path):
        forget(path)
    put(f"removed `{name}`")


def _mapping(columns: tuple[str, ...]) -> dict[str, str]:
    from kb.backlog.sources import FIELDS

    mapping: dict[str, str] = {}
    for field, _, column in (one.partition("=") for one in columns):
        if not (field and column):
            raise click.UsageError("write --map as FIELD=COLUMN, such as --map title=Summary")
        if field not in FIELDS:
            raise click.UsageError(unknown("field", field, FIELDS, f"there is {', '.join(FIELDS)}"))
        if field in mapping:
            raise click.UsageError(f"--map names the column of {field} twice")
        mapping[field] = column
    return mapping
