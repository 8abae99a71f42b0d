"""From a file or a folder to its threads, one by one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import TextIO

from kb.backlog.model import Thread
from kb.backlog.sources.documents import threads_of_document
from kb.backlog.sources.html_text import is_page, text_of_html
from kb.backlog.sources.json_values import are_lines, is_json, values_in, values_of_lines
from kb.backlog.sources.mail import is_mail, threads_of_mail
from kb.backlog.sources.model import Skipped, Source, UnreadableError, Why
from kb.backlog.sources.slack import DAY, is_message, threads_of_channel
from kb.backlog.sources.tables import delimiter_of, is_table, threads_of_table
from kb.backlog.sources.text import chunks, lines, opened, whole
from kb.backlog.sources.trackers import number_of_issue, objects_in, snake, thread_of
from kb.backlog.sources.xml_elements import elements_in, is_xml
from kb.containment import reason
from kb.errors import LogError, short_name
from kb.evidence.nature import is_log
from kb.walk import files_below

_DOCUMENTS = (".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc", "")
"""Endings of documents, where nothing tells by their beginnings what files are."""
_COMMENTS = ("comments", "issue_comments", "issues_comments", "issue-comments")
"""Names of files with the comments of the issues beside them, which hold each its issue's
number."""
_MAX_COMMENTS_BYTES = 1 << 28
"""Of a file of comments, all of which are kept while the issues are read: 256 MB."""
_SAMPLE_LINES = 40
_ALIGNED = re.compile(r"\s*\S[^:\n]{0,60}\s{2,}: ")
"""A line of a listing, such as `nvidia-smi -q` prints."""

Found = Iterator[Thread | Skipped]


def sources_below(path: Path) -> Iterator[Source | Skipped]:
    """What there is to read in a file or a folder, in the order of names. Nothing is opened.

    Raises:
        LogError: there is no such file or folder, or it may not be listed.
    """
    if path.is_file():
        yield _source(path.name, [path])
    elif path.is_dir():
        closed: list[Path] = []
        paths = sorted(Path(entry.path) for entry in files_below(path, closed.append))
        if path in closed:
            raise LogError(path, "the directory may not be listed; change its permissions")
        yield from (Skipped(_name(one, path), Why.BROKEN, "it may not be listed") for one in closed)
        for _, beside in groupby(paths, key=lambda one: one.parent):
            yield from _of_folder(list(beside), path)
    else:
        raise LogError(path, "it is neither a file nor a folder")


def read_source(source: Source, mapping: Mapping[str, str] | None = None) -> Found:
    """The threads of one source. `mapping` names the columns of a table: title -> Summary."""
    number = 0
    try:
        for found in _read(source, mapping or {}):
            number += 1
            yield found
    except UnreadableError as error:
        yield Skipped(source.name, error.why, _where(error.detail, number))
    except (OSError, ValueError, RecursionError) as error:
        yield Skipped(source.name, Why.BROKEN, _where(reason(error), number))


def read_threads(path: Path, mapping: Mapping[str, str] | None = None) -> Found:
    """All threads of a file or a folder."""
    for source in sources_below(path):
        if isinstance(source, Skipped):
            yield source
        else:
            yield from read_source(source, mapping)


def _where(detail: str, number: int) -> str:
    return f"{detail}; {number} before it were read" if number else detail


def _name(path: Path, root: Path) -> str:
    return short_name(path.relative_to(root).as_posix())


def _of_folder(paths: Sequence[Path], root: Path) -> Iterator[Source | Skipped]:
    """The sources among the files of one folder: days of a channel are read together, and so are
    comments with the issues beside them."""
    inside: list[Path] = []
    for path in paths:
        if path.is_symlink() and not _lies_in(path, root):
            yield Skipped(_name(path, root), Why.OUTSIDE)
        else:
            inside.append(path)
    days = [path for path in inside if DAY.fullmatch(path.name)]
    if days:
        yield from _checked([_name(days[0], root)], [days])
    comments = [path for path in inside if path.stem.lower() in _COMMENTS]
    others = [path for path in inside if path not in days]
    issues = [path for path in others if _may_be_commented(path)]
    if comments and issues:
        others = [path for path in others if path not in comments]
    for path in others:
        beside = comments if path in issues else []
        yield from _checked([_name(path, root)], [[path, *beside]])


def _checked(names: Sequence[str], groups: Sequence[Sequence[Path]]) -> Iterator[Source | Skipped]:
    for name, paths in zip(names, groups, strict=True):
        try:
            yield _source(name, paths)
        except OSError as error:
            yield Skipped(name, Why.BROKEN, reason(error))


def _may_be_commented(path: Path) -> bool:
    return (
        path.suffix.lower() in (".json", ".jsonl", ".ndjson")
        and "issue" in path.stem.lower()
        and (path.stem.lower() not in _COMMENTS)
    )


def _lies_in(link: Path, root: Path) -> bool:
    try:
        return link.resolve(strict=True).is_relative_to(root.resolve())
    except (OSError, RuntimeError):
        return False


def _source(name: str, paths: Sequence[Path]) -> Source:
    found = [path.stat() for path in paths]
    stamp = ",".join(f"{one.st_size}:{one.st_mtime_ns}" for one in found)
    return Source(_storable(name), tuple(paths), stamp, sum(one.st_size for one in found))


def _storable(name: str) -> str:
    """A name of bytes that are no UTF-8 as text that tells it from others."""
    return name.encode("utf-8", "backslashreplace").decode()


def _read(source: Source, mapping: Mapping[str, str]) -> Found:
    if DAY.fullmatch(source.paths[0].name):
        return _read_days(source, mapping)
    return _read_file(source, mapping)


def _read_days(source: Source, mapping: Mapping[str, str]) -> Found:
    """The days of a channel; a file that only has such a name is read by itself."""
    with opened(source.paths[0]) as (head, text):
        is_channel = is_json(head) and any(is_message(one) for one in values_in(chunks(text)))
    if is_channel:
        yield from threads_of_channel(_messages(source.paths), str(Path(source.name).parent))
        return
    for path in source.paths:
        name = (Path(source.name).parent / path.name).as_posix()
        yield from _read_file(Source(name, (path,), "", 0), mapping)


def _messages(days: Iterable[Path]) -> Iterator[object]:
    for path in days:
        with opened(path) as (_, text):
            yield from values_in(chunks(text))


def _read_file(source: Source, mapping: Mapping[str, str]) -> Found:
    path, *comments = source.paths
    with opened(path) as (head, text):
        ending = path.suffix.lower()
        if is_json(head) and ending not in _DOCUMENTS[:4]:
            yield from _of_json(head, text, source.name, _by_issue(comments), mapping)
        elif is_page(head):
            yield from threads_of_document(text_of_html(whole(text)), source.name)
        elif is_xml(head) and ending not in _DOCUMENTS[:4]:
            yield from _of_xml(text, source.name)
        elif is_mail(head) and ending not in _DOCUMENTS[:4]:
            yield from threads_of_mail(lines(text), source.name)
        elif ending in (".csv", ".tsv") or (ending not in _DOCUMENTS[:4] and is_table(head)):
            yield from threads_of_table(lines(text), delimiter_of(head), source.name, mapping)
        elif ending in _DOCUMENTS and not _is_dump(head, ending):
            yield from threads_of_document(whole(text), source.name)
        else:
            yield Skipped(source.name, Why.NO_REPORTS)


def _is_dump(head: str, ending: str) -> bool:
    """Whether plain text was printed by a program rather than written."""
    sample = [line for line in head.split("\n") if line.strip()][:_SAMPLE_LINES]
    is_listing = sum(map(bool, map(_ALIGNED.match, sample))) * 2 > len(sample)
    return ending in (".txt", "") and (is_listing or is_log(sample))


def _of_json(
    head: str,
    text: TextIO,
    file: str,
    comments: Mapping[str, list[object]],
    mapping: Mapping[str, str],
) -> Found:
    by_line = are_lines(head)
    values = values_of_lines(lines(text)) if by_line else values_in(chunks(text))
    number, barren = 0, []
    for place, value in enumerate(values, 1):
        before = number
        for fields in objects_in(value, mapping):
            number += 1
            if isinstance(fields, Why):
                yield Skipped(f"{file}#{number}", fields)
            else:
                yield thread_of(fields, file, number, comments.get(str(fields.get("number")), ()))
        if by_line and value is None:
            yield Skipped(f"{file}#{place}", Why.BROKEN, "no JSON")
        elif number == before:
            barren.append(place)
    if number:
        yield from (Skipped(f"{file}#{place}", Why.NO_REPORTS) for place in barren)
    else:  # of data that are no reports at all, one notice is enough
        yield Skipped(file, Why.NO_REPORTS)


def _by_issue(paths: Iterable[Path]) -> dict[str, list[object]]:
    """The comments of each issue, by its number."""
    comments: dict[str, list[object]] = {}
    for path in paths:
        if path.stat().st_size > _MAX_COMMENTS_BYTES:
            raise UnreadableError(Why.TOO_LARGE, "a file of comments has at most 256 MB")
        with opened(path) as (head, text):
            values = values_of_lines(lines(text)) if are_lines(head) else values_in(chunks(text))
            for number, comment in chain.from_iterable(map(_numbered, values)):
                comments.setdefault(number, []).append(comment)
    return comments


def _numbered(value: object) -> Iterator[tuple[str, object]]:
    """A comment with its issue; or the comments of an object by the numbers of issues."""
    if number := number_of_issue(value):
        yield number, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            if str(name).isdigit() and isinstance(inner, list):
                yield from ((str(name), comment) for comment in inner)


def _of_xml(text: TextIO, file: str) -> Found:
    number = 0
    for number, element in enumerate(elements_in(chunks(text)), 1):
        yield thread_of(snake(element), file, number)
    if not number:
        yield Skipped(file, Why.NO_REPORTS)
