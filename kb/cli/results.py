"""Where the results of `kb classify` go."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from enum import StrEnum
from pathlib import Path

import click

from kb.classify import Journal, Summary, encode
from kb.cli.terminal import put, put_json, say, show
from kb.corpus.directories import IncidentDirectories
from kb.errors import IncidentError, OutputError
from kb.files import write_whole
from kb.incident import Incident
from kb.settings import Settings


class Format(StrEnum):
    """How results are written."""

    TABLE = "table"
    JSONL = "jsonl"
    CSV = "csv"
    HTML = "html"


def check_output(output: Path | None, form: Format, resume: bool) -> None:
    """Nothing is overwritten.

    Raises:
        OutputError: the file exists, or is not a regular file.
    """
    if resume and (output is None or form is not Format.JSONL):
        raise click.UsageError("--resume needs a JSONL file: --format jsonl -o FILE --resume")
    if output and output.exists() and not output.is_file():
        raise OutputError(f"{output} is not a file; choose another name")
    if output and output.exists() and not resume:
        raise OutputError(f"{output} exists; continue it with --resume, or choose another name")


def open_journal(stack: ExitStack, output: Path | None, form: Format) -> Journal | None:
    """The file that rows are added to as they come, where there is one."""
    if output is None or form is not Format.JSONL:
        return None
    return stack.enter_context(Journal(output))


def write(
    summary: Summary,
    form: Format,
    output: Path | None,
    journal: Journal | None,
    settings: Settings,
) -> None:
    """Write all results."""
    if journal:
        journal.finish(summary.results, say)
    elif output:
        write_whole(output, _rendered(summary, form, settings))
    elif form is Format.TABLE:
        from kb.views.classify import render

        show(render(summary, say))
    else:
        write_text = put_json if form is Format.JSONL else put
        write_text(_rendered(summary, form, settings).decode(), end="")


def _rendered(summary: Summary, form: Format, settings: Settings) -> bytes:
    if form is Format.JSONL:
        return encode(summary.results, say)
    if form is Format.HTML:
        from kb.views.page import to_html

        return to_html(summary, _records(summary, settings), say)
    from kb.views.classify import to_csv, to_text

    return to_csv(summary, say) if form is Format.CSV else to_text(summary, say)


def _records(summary: Summary, settings: Settings) -> dict[str, Incident]:
    """The records of the incidents that were found."""
    wanted = {name for name, _sure, _perhaps in summary.incidents}
    files = IncidentDirectories(settings.incidents).files()
    found = {}
    for file in files:
        if file.path.stem in wanted:
            with suppress(IncidentError):  # it was just broken; the page does without
                found[file.path.stem] = file.read()
    return found
