"""Threads of a tracker that somebody wrote out as Markdown: a head, the report, the comments."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.backlog.model import Post, Role, Thread
from kb.backlog.sources.model import Skipped, Why
from kb.backlog.sources.sections import front_matter
from kb.backlog.sources.times import read_time

_COMMENT = re.compile(
    r"^(?P<quotes>(?:>[ \t]?)*)[ \t]*(?:👤[ \t]*)?(?:#{1,6}[ \t]*)?"
    r"(?P<word>(?:\*\*)?Comment(?:[ \t]+#?\d+)?(?:[ \t]+(?:by|from))?[ \t:]*(?:\*\*)?[ \t]*)?"
    r"(?:\*\*)?\[?@?(?P<author>[\w.-]{1,50}(?:\[bot\])?)\]?(?:\([^()\n]*\))?(?:\*\*)?"
    r"(?:[ \t]+\([\w ]{1,20}\))?"
    r"(?(word)|[ \t]+(?:commented|replied|wrote|answered|submitted a review|(?<=\*\* )on)\b)"
    r"(?P<rest>[^\n]*\d{4}-\d\d-\d\d[^\n]*)$",
    re.MULTILINE,
)
_TIME = re.compile(r"(?P<day>\d{4}-\d\d-\d\d)(?:\D{1,12}(?P<hour>\d\d:\d\d(?::\d\d)?))?")
_FIELD = re.compile(
    r"^[ \t]*(?:[-*|][ \t]*)?\*\*(?P<name>Author|State|Status|Created|Opened|Closed|Labels?|Link"
    r"|URL|Updated|Reporter|Comments)[ \t]*:?\*\*[ \t]*[:|]?[ \t]*(?P<value>[^\n|]*)",
    re.MULTILINE | re.IGNORECASE,
)
_HEAD = re.compile(r"\s*(?:#{1,6}[ \t]+(?P<title>[^\n]+))")
_HEAD_OF_MIRROR = re.compile(
    r"\s*#{1,6}[ \t][^\n]{0,10}\[#\d+\]\(https?://[^()\s]+/(?:issues|discussions|pull)/\d+\)"
)
_NUMBER = re.compile(r"\[?#(?P<number>\d+)\]?(?:\((?P<url>https?://[^()\s]+)\))?[ \t]*[-:–]?[ \t]*")
_SEVERAL = re.compile(r"^#{1,3}[ \t]+(?:Issue|Bug|Ticket)[ \t]+#?[\w/-]+[ \t]*[:–-]", re.MULTILINE)
_DESCRIPTION = re.compile(
    r"^#{1,6}[ \t]*(?:Description|Body|Issue body)[ \t]*$", re.MULTILINE | re.IGNORECASE
)
_RULE = re.compile(
    r"^[ \t>]*(?:---+|\*\*\*+|<br ?/?>|#{1,6}[ \t]*(?:💬|🗣️)[^\n]*)[ \t]*$", re.MULTILINE
)
_LEADING = re.compile(r"^[^\w\[#（(\"'`]+")
_URL = re.compile(r"https?://[^\s()<>|]+")
_PULL = re.compile(r"/(?:pull|merge_requests)/\d+")
_HEAD_CHARACTERS = 3_000


def is_mirror(text: str) -> bool:
    """Whether a document is a thread, or a list of them, that was written out."""
    head = text[:_HEAD_CHARACTERS]
    names = {found["name"].lower() for found in _FIELD.finditer(head)}
    if names & {"state", "status"} and names & {"created", "opened", "author", "link", "url"}:
        return True
    if _SEVERAL.search(text) and "**Link**" in text:
        return True
    if _HEAD_OF_MIRROR.match(text):
        return True
    fields, _ = front_matter(head)
    return {"state", "number"} <= fields.keys() or (
        _HEAD.match(text) is not None and _COMMENT.search(text) is not None
    )


def threads_of_mirror(text: str, file: str) -> Iterator[Thread | Skipped]:
    """The threads of such a document."""
    starts = [found.start() for found in _SEVERAL.finditer(text)]
    if len(starts) < 2:
        yield _thread(text, file)
        return
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(text)], strict=True), 1):
        yield _thread(text[start:end], f"{file}#{number}")


def _thread(text: str, source: str) -> Thread | Skipped:
    fields, text = front_matter(text)
    comments = list(_COMMENT.finditer(text))
    opening = text[: comments[0].start()] if comments else text
    for found in _FIELD.finditer(opening[:_HEAD_CHARACTERS]):
        fields.setdefault(found["name"].lower(), found["value"].strip(" `*"))
    head = _HEAD.match(opening)
    title, url = _title(head["title"] if head else fields.get("title", ""))
    url = url or next(iter(_URL.findall(fields.get("link", fields.get("url", "")))), None)
    if (url and _PULL.search(url)) or "/pull_requests/" in f"/{source}":
        return Skipped(source, Why.PULL_REQUEST)
    opened = read_time(fields.get("created", fields.get("opened", fields.get("created_at", ""))))
    author = fields.get("author", fields.get("reporter", ""))
    posts = [Post(_body(opening, head.end() if head else 0), Role.REPORTER, opened)]
    ends = [*(found.start() for found in comments[1:]), len(text)]
    for found, end in zip(comments, ends, strict=False):
        posts.append(_post(found, text[found.end() : end], author))
    if not title and not posts[0].text:
        return Skipped(source, Why.EMPTY)
    return Thread(
        source=source,
        title=title,
        posts=tuple(posts),
        url=url,
        opened=opened,
        closed=read_time(fields.get("closed", "")),
        state=re.sub(r"[^\w ]+", "", fields.get("state", fields.get("status", ""))).strip().lower(),
        labels=tuple(
            filter(None, re.split(r"[,`\s]+", fields.get("labels", fields.get("label", ""))))
        ),
    )


def _title(heading: str) -> tuple[str, str | None]:
    """The title, and the address of the thread that stands beside it."""
    title = re.sub(r"^(?:Issue|Bug|Ticket)[ \t]+#?[\w/-]+[ \t]*[:–-][ \t]*", "", heading)
    title = _LEADING.sub("", title)
    number = _NUMBER.match(title)
    if number is None:
        return " ".join(title.split()), None
    return " ".join(title[number.end() :].split()), number["url"]


def _body(opening: str, start: int) -> str:
    """The report without the table of its fields."""
    described = _DESCRIPTION.search(opening, start)
    if described:
        return _plain(opening[described.end() :])
    rest = opening[start:]
    return _plain("\n".join(line for line in rest.split("\n") if not _FIELD.match(line)))


def _post(found: re.Match[str], text: str, author: str) -> Post:
    time = _TIME.search(found["rest"])
    if quotes := found["quotes"].strip():
        text = re.sub(
            rf"^(?:>[ \t]?){{1,{len(quotes.replace(' ', ''))}}}", "", text, flags=re.MULTILINE
        )
    name = found["author"]
    role = Role.BOT if name.endswith("[bot]") else Role.REPORTER if name == author else Role.OTHER
    when = " ".join(filter(None, time.groups())) if time else ""
    return Post(_plain(text.removeprefix("<br>")), role, read_time(when))


def _plain(text: str) -> str:
    return _RULE.sub("", text.replace("\r\n", "\n")).strip()
