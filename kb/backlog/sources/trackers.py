"""Objects of trackers, whoever exported them: GitHub, GitLab, Jira, ServiceNow, PagerDuty, status
pages, Bugzilla. What they call the same thing is a table; the shapes around it are unwrapped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from kb.backlog.model import Post, Role, Thread
from kb.backlog.sources.model import Skipped, Why
from kb.backlog.sources.times import read_time

Fields: TypeAlias = Mapping[str, Any]

_NAMES: Mapping[str, tuple[str, ...]] = {
    "title": ("title", "summary", "short_description", "short_desc", "subject", "name"),
    "body": ("body", "body_text", "description", "body_html", "details", "content", "text"),
    "comments": (
        "comments", "comment", "notes", "incident_updates", "updates", "long_desc", "answers",
        "discussions", "replies", "messages", "posts", "work_notes", "timeline_items",
    ),
    "resolution": (
        "close_notes", "resolution_notes", "resolve_reason", "postmortem_body", "answer",
        "resolution_description", "root_cause_and_fix", "fix", "solution", "workaround",
    ),
    "url": ("html_url", "web_url", "url", "link", "shortlink", "permalink", "self"),
    "id": ("number", "key", "iid", "issue_id", "bug_id", "incident_number", "id", "sys_id"),
    "opened": (
        "created_at", "created", "opened_at", "open_date", "creation_ts", "started_at", "pub_date",
        "sys_created_on", "date", "bug_when", "time", "published_at", "ts", "display_at",
    ),
    "closed": ("closed_at", "resolved_at", "resolution_date", "resolutiondate", "resolved",
               "closed_time", "closed"),
    "state": ("state_reason", "resolution", "state", "status", "bug_status"),
    "labels": ("labels", "tags", "components", "label"),
    "author": ("author", "user", "reporter", "creator", "who", "created_by", "from",
               "opened_by", "username"),
    "text": ("body", "thetext", "content", "note", "text", "message", "body_text", "comment",
             "description", "body_html"),
    "association": ("author_association",),
    "duplicate_of": ("duplicate_of", "dup_id", "duplicated_to_id", "dupe_of"),
}  # fmt: skip
"""What a field is called, the most telling name first; in words of lower case with underscores."""

_CHANGES = ("pulls", "pull_requests", "merge_requests")
"""Lists of changes beside a list of issues."""
_CHANGE_FIELDS = ("pull_request", "head_ref_name", "merged_at", "merge_commit_sha", "merge_status")
_CHANGE_URL = re.compile(r"/(?:pull|merge_requests)/\d+")
_MAINTAINERS = frozenset(("MEMBER", "OWNER", "COLLABORATOR"))
_BOT = re.compile(
    r"\[bot\]$|(?:^|[-_])bot$|^(?:dependabot|github-actions|stale|renovate|codecov|mergify)\b"
    r"|^tensorflow-?butler|^google-ml-butler|^tensorflowbut",
    re.IGNORECASE,
)
_MONOLOGUE = 4
"""Answers that nobody gives to themselves in a row."""
FIELDS = tuple(_NAMES)
"""Of a thread, as `--map` names them."""
_MAX_DEPTH = 12
"""Levels of wrapping looked through for threads."""
_MAX_POSTS = 500
"""Posts read of one thread; what ended it is among its last, so the middle goes."""


def objects_in(
    value: object, mapping: Mapping[str, str] | None = None, depth: int = 0
) -> Iterator[Fields | Why]:
    """The objects of threads in a value, however they are wrapped, and the changes beside them.
    `mapping` names fields: title -> headline."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from objects_in(item, mapping, depth + 1)
    elif isinstance(value, dict):
        fields = snake(value) | dict(_mapped(value, mapping or {}))
        if is_thread(fields):
            yield fields
            return
        for name, inner in fields.items():
            if name in _CHANGES:
                yield from (Why.PULL_REQUEST for _ in _items(inner))
            elif isinstance(inner, list | dict):
                yield from objects_in(inner, mapping, depth + 1)


def _mapped(value: Mapping[Any, Any], mapping: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """The fields that somebody named, under the first name of each."""
    for field, name in mapping.items():
        if name in value:
            yield _NAMES.get(field, (field,))[0], value[name]


def is_thread(fields: Fields) -> bool:
    """Whether an object holds a report: a title, and a text or what a tracker notes beside it."""
    if isinstance(inner := fields.get("fields"), dict):  # Jira
        return "summary" in inner
    if not isinstance(_first(fields, "title"), str):
        return False
    told = _first(fields, "body") is not None or _first(fields, "comments") is not None
    noted = any(_first(fields, name) is not None for name in ("state", "opened", "url", "comments"))
    return told and noted


def thread_of(
    fields: Fields, file: str, number: int, extra: Sequence[object] = ()
) -> Thread | Skipped:
    """The thread of an object; `extra` are comments that lie in a file of their own."""
    fields = _flattened(fields)
    source = f"{file}#{_plain(_first(fields, 'id')) or number}"
    author = _name(_first(fields, "author"))
    if any(fields.get(name) for name in _CHANGE_FIELDS) or _CHANGE_URL.search(_url(fields)):
        return Skipped(source, Why.PULL_REQUEST)
    if _is_bot(fields.get("author", fields.get("user")), author):
        return Skipped(source, Why.BOT)
    posts = (_opening(fields), *_with_roles(list(_answers(fields, author, extra)), author))
    title = _plain(_first(fields, "title"))
    if not title and not posts[0].text:
        return Skipped(source, Why.EMPTY)
    return Thread(
        source=source,
        title=title,
        posts=posts if len(posts) <= _MAX_POSTS else (posts[0], *posts[1 - _MAX_POSTS :]),
        url=_url(fields) or None,
        opened=read_time(_first(fields, "opened")),
        closed=read_time(_first(fields, "closed")),
        state=_state(fields),
        labels=tuple(_labels(_first(fields, "labels"))),
        duplicate_of=_plain(_first(fields, "duplicate_of")) or None,
    )


def number_of_issue(comment: object) -> str | None:
    """The issue that a comment of a file of comments belongs to."""
    if not isinstance(comment, dict):
        return None
    fields = snake(comment)
    for name in ("issue_url", "issue_number", "issue", "issue_id", "html_url", "url"):
        found = re.search(r"(?:issues/|^)([A-Z]+-\d+|\d+)(?:#.*)?$", _plain(fields.get(name)))
        if found:
            return found[1]
    return None


def snake(fields: Mapping[Any, Any]) -> dict[str, Any]:
    """The fields under names in one spelling: `createdAt` and `Created At` are one."""
    return {
        re.sub(r"(?<=[a-z\d])(?=[A-Z])|[\s/()-]+", "_", str(name)).strip("_").lower(): value
        for name, value in fields.items()
    }


def _flattened(fields: Fields) -> Fields:
    inner = fields.get("fields")  # Jira
    return {**fields, **snake(inner)} if isinstance(inner, dict) else fields


def _first(fields: Fields, name: str) -> Any:
    """The value under the first of the names that holds one."""
    return next(
        (fields[known] for known in _NAMES[name] if fields.get(known) not in (None, "", [])), None
    )


def _opening(fields: Fields) -> Post:
    return Post(_text(_first(fields, "body")), Role.REPORTER, read_time(_first(fields, "opened")))


def _answers(fields: Fields, reporter: str, extra: Sequence[object]) -> Iterator[Post]:
    comments = [item for name in _NAMES["comments"] for item in _items(fields.get(name))]
    for comment in (*comments, *extra):
        yield from _posts(comment, reporter)
    if text := _text(_first(fields, "resolution")):
        answer = _first(fields, "resolution")
        role = _role(answer, reporter) if isinstance(answer, dict) else Role.MAINTAINER
        yield Post(text, role, read_time(_first(fields, "closed")), accepted=True)
    for change in _items(fields.get("closed_by_pull_requests_references")):
        if isinstance(change, dict) and change.get("title"):
            text = f"{change['title']} {change.get('url', '')}".strip()
            yield Post(text, Role.MAINTAINER, read_time(_first(fields, "closed")), accepted=True)


def _with_roles(answers: list[Post], reporter: str) -> list[Post]:
    """The answers; some exports name the reporter as the author of each, even where somebody
    speaks to the reporter."""
    if reporter and any(post.role is not Role.REPORTER for post in answers):
        return answers
    if not any(f"@{reporter}" in post.text for post in answers) and len(answers) < _MONOLOGUE:
        return answers
    return [msgspec.structs.replace(post, role=Role.OTHER) for post in answers]


def _posts(comment: object, reporter: str, depth: int = 0) -> Iterator[Post]:
    """A comment and the replies to it."""
    if isinstance(comment, str) and comment.strip():
        yield Post(_text(comment))
    if not isinstance(comment, dict) or depth > _MAX_DEPTH:
        return
    fields = snake(comment)
    text = _text(_first(fields, "text"))
    if text and not fields.get("system"):
        yield Post(
            text,
            _role(fields, reporter),
            read_time(_first(fields, "opened")),
            accepted=bool(fields.get("is_answer") or fields.get("accepted")),
        )
    for name in ("replies", "notes", "comments"):
        for reply in _items(fields.get(name)):
            yield from _posts(reply, reporter, depth + 1)


def _items(value: object) -> Sequence[Any]:
    """The items of a list, of nodes, of edges, or of a page; none of a number of comments."""
    if isinstance(value, list):
        return [item["node"] if _is_edge(item) else item for item in value]
    if isinstance(value, dict):
        for name in ("nodes", "edges", "comments", "items", "data", "comment", "values"):
            if name in value:
                return _items(value[name])
        return [value]
    return [value] if isinstance(value, str) and value.strip() else []


def _is_edge(item: object) -> bool:
    return isinstance(item, dict) and isinstance(item.get("node"), dict)


def _role(fields: Fields, reporter: str) -> Role:
    author = next((fields[name] for name in _NAMES["author"] if fields.get(name)), None)
    name = _name(author)
    if _is_bot(author, name):
        return Role.BOT
    if name and name == reporter:
        return Role.REPORTER
    association = _plain(fields.get("author_association") or fields.get("authorAssociation"))
    return Role.MAINTAINER if association.upper() in _MAINTAINERS else Role.OTHER


def _name(author: object) -> str:
    if isinstance(author, dict):
        names = ("login", "username", "name", "display_name", "displayName", "email", "summary")
        return next((_plain(author[name]) for name in names if author.get(name)), "")
    return _plain(author)


def _is_bot(author: object, name: str) -> bool:
    if isinstance(author, dict):
        kinds = (author.get("type"), author.get("__typename"))
        if "Bot" in kinds or author.get("is_bot") is True or author.get("bot") is True:
            return True
    return _BOT.search(name) is not None


def _state(fields: Fields) -> str:
    """The reason why it was closed, where one is told."""
    values = [_plain(_named(fields.get(name))) for name in _NAMES["state"]]
    if any(value.lower() in ("open", "reopened") for value in values):
        return "open"
    return next((value.lower() for value in values if value and value != "---"), "")


def _named(value: object) -> object:
    return value.get("name", value.get("displayName")) if isinstance(value, dict) else value


def _labels(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield from (label for label in re.split(r"[,;]\s*", value) if label)
    for item in _items(value) if not isinstance(value, str) else ():
        if name := _plain(_named(item)):
            yield name


def _url(fields: Fields) -> str:
    addresses = (_plain(fields.get(name)) for name in _NAMES["url"])
    return next((found for found in addresses if found.startswith(("http://", "https://"))), "")


def _plain(value: object) -> str:
    return " ".join(str(value).split()) if isinstance(value, str | int) else ""


def _text(value: object) -> str:
    """The text of a field: plain, a wrapped one, or a document of Jira's cloud."""
    if isinstance(value, str):
        return value.replace("\r\n", "\n").strip()
    if isinstance(value, dict):
        fields = snake(value)
        inner = _first(fields, "text") if fields.get("type") != "doc" else None
        return _text(inner) if isinstance(inner, str) else "".join(_document(value)).strip()
    return ""


def _document(node: object, depth: int = 0) -> Iterator[str]:
    """The text of a document of Jira's cloud, in which each paragraph is a node."""
    if depth > 50 or not isinstance(node, dict):
        return
    if isinstance(node.get("text"), str):
        yield node["text"]
    fence = "\n```\n" if node.get("type") == "codeBlock" else ""
    yield fence
    for inner in node.get("content") or ():
        yield from _document(inner, depth + 1)
    yield fence or ("\n\n" if node.get("type") in ("paragraph", "heading", "listItem") else "")
