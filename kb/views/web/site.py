"""All records as a static site: a directory that any web server, or a browser, can show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from index.progress import Notify
from kb.containment import surviving
from kb.errors import OutputError
from kb.files import cannot_write, check_new, create
from kb.guides import Record
from kb.views.web.pages import STATIC, Pages, place_of, row_of, style_sheet
from kb.views.web.record import record_page

Page = tuple[str, str]
"""Where a page is, and what it holds."""


def write_site(directory: Path, records: Mapping[str, Record], notify: Notify) -> int:
    """Write the site into a directory that is empty or does not exist; return the number of records
    in it. A record that cannot be shown is told and left out.

    Raises:
        OutputError: the directory holds something, or cannot be written.
    """
    check_directory(directory)
    pages = dict(_records(records, notify))
    rows = [row_of(record) for record in records.values() if f"{place_of(record)}.html" in pages]
    pages["index.html"] = Pages(STATIC).listing("./", rows)
    pages["style.css"] = style_sheet()
    pages["search.js"] = Path(__file__).with_name("search.js").read_text("utf-8")
    is_new = not directory.exists()
    written: list[Path] = []
    try:
        for place, text in pages.items():
            _create(directory / place, text)
            written.append(directory / place)
    except OutputError:
        for file in written:
            with suppress(OSError):
                file.unlink()
        folders = {(directory / place).parent for place in pages} - {directory}
        _remove_empty([*folders, *([directory] if is_new else [])])
        raise
    return len(rows)


def check_directory(directory: Path) -> None:
    """Find out before the work whether a site can be written there.

    Raises:
        OutputError: it holds something, or cannot be written.
    """
    try:
        if directory.exists() and any(directory.iterdir()):
            raise OutputError(f"{directory} is not empty; name a new directory")
    except OSError as error:
        raise cannot_write(directory, error) from error
    check_new(directory / "index.html")


def _create(file: Path, text: str) -> None:
    try:
        create(file, text.encode("utf-8", "replace"))
    except FileExistsError as error:
        raise OutputError(f"{file} appeared meanwhile; name a new directory") from error


def _remove_empty(folders: Iterable[Path]) -> None:
    """So that the next run finds the directory as this one did."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def _records(records: Mapping[str, Record], notify: Notify) -> Iterator[Page]:
    site = Pages(STATIC)

    def page(record: Record) -> Page:
        return f"{place_of(record)}.html", record_page(site, record, records)

    return surviving(
        records.values(), page, lambda one: f"{one.id} is left out of the site", notify
    )
