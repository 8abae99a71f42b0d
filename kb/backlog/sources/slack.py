"""An export of Slack: one file a day in the folder of a channel."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from kb.backlog.model import Post, Role, Thread
from kb.backlog.sources.model import Skipped, Why
from kb.backlog.sources.times import read_time

DAY = re.compile(r"\d{4}-\d\d-\d\d\.json")
"""The name of a file with the messages of a day."""

_PAUSE = timedelta(hours=3)
"""Without threads, a talk ends where nobody says anything for so long."""
_MAX_TITLE_CHARACTERS = 120
_MENTION = re.compile(r"<[@!](?:[^<>|]*\|)?([^<>|]*)>")
_LINK = re.compile(r"<(https?://[^<>|\s]+)(?:\|[^<>]*)?>")
_CHANNEL = re.compile(r"<#[^<>|]*\|?([^<>|]*)>")


def is_message(value: object) -> bool:
    """Whether a value is a message of a channel."""
    return isinstance(value, dict) and value.get("type") == "message" and "ts" in value


def threads_of_channel(messages: Iterable[object], file: str) -> Iterator[Thread | Skipped]:
    """The threads of a channel; what was said outside of one, in talks."""
    threads: dict[str, list[Mapping[str, Any]]] = {}
    talk, last = "", None
    for message in messages:
        if not isinstance(message, dict) or message.get("subtype") not in (
            None,
            "thread_broadcast",
        ):
            continue
        start = str(message.get("thread_ts") or "")
        time = read_time(str(message.get("ts")))
        if not start:
            if last is None or time is None or time - last > _PAUSE:
                talk = str(message.get("ts"))
            start, last = talk, time
        threads.setdefault(start, []).append(message)
    for start, said in threads.items():
        yield _thread(said, f"{file}#{start}")


def _thread(messages: list[Mapping[str, Any]], source: str) -> Thread | Skipped:
    author = messages[0].get("user")
    posts = tuple(
        Post(
            _text(str(message.get("text") or "")),
            _role(message, author),
            read_time(str(message.get("ts"))),
        )
        for message in messages
    )
    if posts[0].role is Role.BOT:
        return Skipped(source, Why.BOT)
    if len(posts) < 2 or not posts[0].text:
        return Skipped(source, Why.EMPTY)
    title = posts[0].text.partition("\n")[0][:_MAX_TITLE_CHARACTERS]
    return Thread(source=source, title=title, posts=posts, opened=posts[0].time)


def _role(message: Mapping[str, Any], author: object) -> Role:
    if message.get("bot_id") or message.get("user") == "USLACKBOT":
        return Role.BOT
    return Role.REPORTER if message.get("user") == author else Role.OTHER


def _text(text: str) -> str:
    """A message without Slack's own marks for people, channels and links."""
    text = _LINK.sub(r"\1", _MENTION.sub("@someone", text))
    return html.unescape(_CHANNEL.sub(r"#\1", text)).strip()
