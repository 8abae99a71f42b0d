"""Tables of tickets: CSV, TSV, and objects with flat fields. Their columns are guessed."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from kb.backlog.model import Post, Role, Thread
from kb.backlog.sources.model import Skipped, UnreadableError, Why
from kb.backlog.sources.times import read_time

_NAMES: Mapping[str, tuple[str, ...]] = {
    "title": ("summary", "title", "short description", "subject", "issue title", "name",
              "incident title", "headline", "标题", "问题", "主题", "摘要", "问题标题"),
    "body": ("description", "body", "details", "detail", "symptom", "symptoms", "problem",
             "issue description", "steps to reproduce", "question", "content", "text", "描述",
             "问题描述", "现象", "故障现象", "详情"),
    "comments": ("comment", "comments", "work notes", "additional comments", "notes", "updates",
                 "timeline", "discussion", "评论", "处理过程"),
    "cause": ("root cause", "cause", "rca", "原因", "根因", "故障原因", "原因分析"),
    "resolution": ("close notes", "resolution notes", "resolution description",
                   "resolution details",
                   "fix", "solution", "remedy", "workaround", "answer", "action taken",
                   "mitigation", "resolution summary", "解决", "解决方案", "解决方法", "处理方法",
                   "解决措施", "答案"),
    "id": ("issue key", "key", "number", "incident number", "ticket", "ticket id", "issue id", "id",
           "bug id", "case number", "编号", "工单号"),
    "url": ("url", "link", "html url", "issue url"),
    "opened": ("created", "created at", "opened", "opened at", "created on", "open date", "date",
               "reported", "start", "started at", "start time", "创建时间", "时间", "日期",
               "发生时间"),
    "closed": ("resolved", "closed", "resolved at", "closed at", "resolved on", "end", "end time",
               "关闭时间", "解决时间"),
    "state": ("resolution", "resolution code", "close code"),
    "status": ("status", "state", "状态"),
    "labels": ("labels", "tags", "components", "component s", "component", "category", "service",
               "标签", "类别"),
    "duplicate_of": ("duplicate of", "duplicate", "duplicates"),
}  # fmt: skip
"""What the columns of a field are called, the most telling name first."""

FIELDS = tuple(_NAMES)
"""What a column can hold, as `--map` names it."""
_FEW_WORDS = 4
"""A state has so many words at most; a resolution that was written down has more."""
_SAMPLE_ROWS = 50
"""Rows by which columns are guessed."""
_DELIMITERS = ",\t;|"
_MAX_COLUMNS = 2000


def guess_columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, str]:
    """Which column holds which field of a thread, by its name and what stands in it."""
    named = {_plain(column): column for column in reversed(header)}
    guessed = {
        field: next(named[name] for name in names if name in named)
        for field, names in _NAMES.items()
        if not named.keys().isdisjoint(names)
    }
    place = {column: number for number, column in reversed(list(enumerate(header)))}
    told = named.get("resolution")
    if told and "resolution" not in guessed and _holds_prose(rows, place[told]):
        guessed["resolution"] = told  # the ticket's own words, not one of "Fixed" or "Won't fix"
    return guessed


def is_table(head: str) -> bool:
    """Whether a text that begins so is a table with a column of titles."""
    delimiter = delimiter_of(head)
    header = next(csv.reader([head.partition("\n")[0]], delimiter=delimiter), [])
    columns = guess_columns(header, ())
    return len(header) > 1 and "title" in columns and len(columns) > 1


def delimiter_of(head: str) -> str:
    """What stands between the columns of the first line most often."""
    line = head.partition("\n")[0]
    return max(_DELIMITERS, key=line.count)


def threads_of_table(
    lines: Iterable[str], delimiter: str, file: str, mapping: Mapping[str, str] | None
) -> Iterator[Thread | Skipped]:
    """The thread of each row.

    Raises:
        UnreadableError: it has no column of titles, or is broken from here on.
    """
    rows = _rows(lines, delimiter)
    header = [column.strip().lstrip("\ufeff") for column in next(rows, [])]
    sample = list(islice(rows, _SAMPLE_ROWS))
    columns = {**guess_columns(header, sample), **(mapping or {})}
    if missing := [column for column in columns.values() if column not in header]:
        raise UnreadableError(Why.BROKEN, f"it has no column {missing[0]}")
    if "title" not in columns:
        raise UnreadableError(Why.NO_REPORTS, "no column of titles; name one: --map title=COLUMN")
    places = {
        field: [number for number, name in enumerate(header) if name == column]
        for field, column in columns.items()
    }
    for number, row in enumerate(chain(sample, rows), 2):
        yield _thread(row, places, file, number)


def _rows(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    csv.field_size_limit(MAX_FIELD_CHARACTERS)
    try:
        yield from (row for row in csv.reader(lines, delimiter=delimiter) if row)
    except csv.Error as error:
        raise UnreadableError(Why.BROKEN, f"a quote does not end: {error}") from error


def _thread(
    row: Sequence[str], places: Mapping[str, Sequence[int]], file: str, number: int
) -> Thread | Skipped:
    def cells(field: str) -> list[str]:
        """Jira repeats a column for each comment."""
        found = (row[place].strip() for place in places.get(field, ()) if place < len(row))
        return [cell for cell in found if cell]

    def cell(field: str) -> str:
        return next(iter(cells(field)), "")

    source = f"{file}#{cell('id') or number}"
    if not cell("title") and not cell("body"):
        return Skipped(source, Why.EMPTY)
    posts = [Post("\n\n".join(cells("body")), Role.REPORTER, read_time(cell("opened")))]
    posts += [_comment(text) for text in cells("comments")]
    posts += [Post(text, Role.MAINTAINER) for text in cells("cause")]
    closed = read_time(cell("closed"))
    posts += [Post(text, Role.MAINTAINER, closed, accepted=True) for text in cells("resolution")]
    url = cell("url")
    return Thread(
        source=source,
        title=" ".join(cell("title").split()),
        posts=tuple(posts),
        url=url if url.startswith(("http://", "https://")) else None,
        opened=read_time(cell("opened")),
        closed=closed,
        state=_state((*cells("state"), *cells("status")), closed is not None),
        labels=tuple(label for cell in cells("labels") for label in re.split(r"[,;]\s*", cell)),
        duplicate_of=cell("duplicate_of") or None,
    )


_JIRA_COMMENT = re.compile(
    r"(?P<time>[^;\n]{6,30});(?P<author>[^;\n]{1,80});(?P<text>.*)", re.DOTALL
)


def _comment(cell: str) -> Post:
    """A comment; Jira puts its time and author in front."""
    found = _JIRA_COMMENT.match(cell)
    if found and (time := read_time(found["time"])):
        return Post(found["text"].strip(), Role.OTHER, time)
    return Post(cell)


def _state(states: Sequence[str], closed: bool) -> str:
    return states[0].lower() if states else "closed" if closed else ""


def _holds_prose(rows: Sequence[Sequence[str]], place: int) -> bool:
    cells = [row[place] for row in rows if place < len(row) and row[place].strip()]
    return bool(cells) and sum(len(cell.split()) > _FEW_WORDS for cell in cells) * 2 > len(cells)


def _plain(column: str) -> str:
    return " ".join(re.sub(r"[_\W]+", " ", column).lower().split())


MAX_FIELD_CHARACTERS = 1 << 24
"""Of one field: a ticket with all its mail has some hundred thousand."""
