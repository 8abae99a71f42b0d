"""Where the results of `kb classify` go."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from enum import StrEnum
from pathlib import Path

import click

from kb.classify import Journal, Result, Summary, encode
from kb.cli.terminal import put, put_json, say, show
from kb.containment import reason
from kb.corpus.directories import IncidentDirectories
from kb.errors import IncidentError, KbError, OutputError
from kb.files import cannot_write, check_new, write_new
from kb.incident import Incident
from kb.settings import Settings

_KEPT_NAME = "kb-results.jsonl"
"""Of results that could not be written as they should be."""


class Format(StrEnum):
    """How results are written."""

    TABLE = "table"
    JSONL = "jsonl"
    CSV = "csv"
    HTML = "html"


def check_output(output: Path | None, form: Format, resume: bool) -> None:
    """Tell before the work whether the results can be written.

    Raises:
        OutputError: something has this name, or the directory cannot be written.
    """
    if resume and (output is None or form is not Format.JSONL):
        raise click.UsageError("--resume needs a JSONL file: --format jsonl -o FILE --resume")
    if output is None:
        return
    try:
        _check_place(output, form, resume)
    except OSError as error:  # such as that of a name that is too long
        raise cannot_write(output, error) from error


def _check_place(output: Path, form: Format, resume: bool) -> None:
    if output.is_symlink() or (output.exists() and not output.is_file()):
        raise OutputError(f"{output} is not a file; choose another name")
    if not output.parent.is_dir():
        raise OutputError(f"cannot write {output}: {output.parent} is not a directory; create it")
    if not output.exists():
        check_new(output)
    elif not resume:
        going_on = "continue it with --resume, or " if form is Format.JSONL else ""
        raise OutputError(f"{output} exists; {going_on}choose another name")


def open_journal(
    stack: ExitStack, output: Path | None, form: Format, resume: bool
) -> Journal | None:
    """The file that rows are added to as they come, where there is one."""
    if output is None or form is not Format.JSONL:
        return None
    return stack.enter_context(Journal(output, resume=resume))


@contextmanager
def kept(results: Sequence[Result], output: Path | None, journal: Journal | None) -> Iterator[None]:
    """If the results cannot be counted, shown or written, keep them as rows, and say where.

    Raises:
        OutputError: that is so.
    """
    try:
        yield
    except BrokenPipeError:  # nobody reads them
        raise
    except Exception as error:
        why = error if isinstance(error, KbError) else f"cannot write the results: {reason(error)}"
        raise OutputError(f"{why}{_what_is_kept(results, output, journal)}") from error


def _what_is_kept(results: Sequence[Result], output: Path | None, journal: Journal | None) -> str:
    if journal:
        going_on = f"; the results so far are in {journal.path}, continue with --resume"
        return "" if journal.is_empty else going_on
    place = _saved(results, output)
    return f"; the results are kept in {place}" if place else ""


def write(
    summary: Summary,
    form: Format,
    output: Path | None,
    journal: Journal | None,
    settings: Settings,
) -> Path | None:
    """Write all results, and return where they lie: `output`, or the next free name if another
    file has appeared under it; None on stdout."""
    if journal:
        return journal.finish(summary.results, say)
    if output:
        return write_new(output, _rendered(summary, form, settings))
    if form is Format.TABLE:
        from kb.views.classify import render

        show(render(summary, say))
    else:
        write_text = put_json if form is Format.JSONL else put
        write_text(_rendered(summary, form, settings).decode(), end="")
    return None


def _saved(results: Sequence[Result], output: Path | None) -> Path | None:
    """Where the rows are now: beside the output, in the temporary directory, or nowhere."""
    rows = encode(results, say)
    with suppress(OutputError):
        if output:
            return write_new(output.with_name(_KEPT_NAME), rows)
    with suppress(OutputError, OSError):  # the latter: there is no such directory
        return write_new(Path(tempfile.gettempdir(), _KEPT_NAME), rows)
    return None


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
    found = {}
    for file in IncidentDirectories(settings.incidents).files():
        if file.path.stem in wanted:
            with suppress(IncidentError):  # it was just broken; the page does without
                record = file.read()
                if isinstance(record, Incident):
                    found[record.id] = record
    return found
