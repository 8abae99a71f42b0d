"""Mail: a mailbox or one message. A thread is what answers each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from email import message_from_string, policy
from email.headerregistry import HeaderRegistry
from email.message import EmailMessage
from typing import Any

from kb.backlog.model import Post, Role, Thread
from kb.backlog.sources.html_text import text_of_html
from kb.backlog.sources.model import Skipped, Why
from kb.backlog.sources.times import read_time

_MAX_MESSAGE_CHARACTERS = 1 << 20
"""Of a message; what is beyond are its attachments."""
_MAX_HEADER_CHARACTERS = 2_000
"""Of a header: its parser takes memory with the square of its length. Forty answered messages."""
_MAX_DEPTH = 100
"""Of parts in each other. A mail that was forwarded again and again has some ten."""
_MBOX = re.compile(r"From \S+@?\S*.*\d{4}\s*$", re.MULTILINE)
_MESSAGE = re.compile(r"(?:[A-Za-z][\w-]*: .*\n(?:[ \t].*\n)*){2,}", re.ASCII)
_SUBJECT = re.compile(
    r"^(?:\s*(?:re|fwd?|aw|wg|回复|答复|转发)\s*[:：]|\s*\[[^\]]{1,40}\])+\s*", re.IGNORECASE
)
_ID = re.compile(r"<[^<>\s]{1,250}>")
_HEADERS = ("from", "subject")


class _ShortHeaders(HeaderRegistry):
    def __call__(self, name: str, value: str) -> Any:
        return super().__call__(name, value[:_MAX_HEADER_CHARACTERS])


class _Part(EmailMessage):
    """A mail, or a part of one that knows how deep it lies."""

    depth = 0

    def attach(self, payload: Any) -> None:
        """Take in a part.

        Raises:
            RecursionError: it lies too deep; Python's parser ends so as well, somewhat later.
        """
        payload.depth = self.depth + 1
        if payload.depth > _MAX_DEPTH:
            raise RecursionError
        super().attach(payload)


_POLICY = policy.default.clone(header_factory=_ShortHeaders(), message_factory=_Part)


def is_mail(head: str) -> bool:
    """Whether a file that begins so is a mailbox or a message."""
    if head.startswith("From ") and _MBOX.match(head):
        return True
    found = _MESSAGE.match(head)
    headers = "\n" + found[0].lower() if found else ""
    return all(f"\n{name}:" in headers for name in _HEADERS)


def threads_of_mail(lines: Iterable[str], file: str) -> Iterator[Thread | Skipped]:
    """The threads of a mailbox, in the order of their first messages. A message that cannot be
    read takes no other away."""
    threads: dict[str, list[tuple[EmailMessage, str]]] = {}
    roots: dict[str, str] = {}
    for number, source in enumerate(_messages(lines), 1):
        try:
            message = message_from_string(source, policy=_POLICY)
        except RecursionError:
            too_deep = "its parts or comments lie too deep in each other"
            yield Skipped(f"{file}, mail {number}", Why.BROKEN, too_deep)
        else:
            root = _root(message, roots)
            threads.setdefault(root, []).append((message, _text(message)))
    for number, messages in enumerate(threads.values(), 1):
        yield _thread(messages, f"{file}#{number}")


def _messages(lines: Iterable[str]) -> Iterator[str]:
    part: list[str] = []
    size = 0
    for line in lines:
        if line.startswith("From ") and _MBOX.match(line) and part:
            yield "".join(part)
            part, size = [], 0
        if size < _MAX_MESSAGE_CHARACTERS and not (line.startswith("From ") and not part):
            part.append(line)
            size += len(line)
    if part:
        yield "".join(part)


def _text(message: EmailMessage) -> str:
    try:
        body = message.get_body(("plain", "html"))
        content = body.get_content() if body else ""
    except (LookupError, ValueError, AttributeError, TypeError):  # headers and parts that lie
        return ""
    if body is not None and body.get_content_subtype() == "html":
        return text_of_html(content)
    return str(content).strip()


def _header(message: EmailMessage, name: str) -> str:
    try:
        return " ".join(str(message.get(name, "")).split())
    except (ValueError, IndexError, AttributeError, TypeError, RecursionError):
        return ""


def _root(message: EmailMessage, roots: dict[str, str]) -> str:
    """The first message of the thread, by what it answers, or by its subject."""
    own = next(iter(_ID.findall(_header(message, "message-id"))), "")
    answered = _ID.findall(_header(message, "references") + _header(message, "in-reply-to"))
    subject = _header(message, "subject")
    plain = "subject " + _SUBJECT.sub("", subject).lower()
    is_answer = bool(answered) or plain != "subject " + subject.lower()
    known = (roots[name] for name in (*answered, plain) if is_answer and name in roots)
    root = next(known, own or plain)
    roots.setdefault(own, root)
    roots.setdefault(plain, root)
    return root


def _thread(messages: list[tuple[EmailMessage, str]], source: str) -> Thread | Skipped:
    first, _ = messages[0]
    author = _header(first, "from")
    title = _SUBJECT.sub("", _header(first, "subject"))
    posts = tuple(
        Post(
            text,
            Role.REPORTER if _header(message, "from") == author else Role.OTHER,
            read_time(_header(message, "date")),
        )
        for message, text in messages
    )
    if not title and not posts[0].text:
        return Skipped(source, Why.EMPTY)
    return Thread(source=source, title=title, posts=posts, opened=posts[0].time)
