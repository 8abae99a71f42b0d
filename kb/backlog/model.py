"""What is read from a backlog: threads as trackers hold them, and the reports made of them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec


class Role(StrEnum):
    """Who wrote a post."""

    REPORTER = "reporter"
    MAINTAINER = "maintainer"
    """A member, owner or collaborator of the project; whoever wrote an answer in a FAQ."""
    OTHER = "other"
    BOT = "bot"


class Post(msgspec.Struct, frozen=True):
    """One message of a thread: the first one is the report."""

    text: str
    """As written: Markdown or plain text; HTML and other markup are taken out by the reader."""
    role: Role = Role.OTHER
    time: datetime | None = None
    accepted: bool = False
    """Marked as the answer by the tracker or its form: an accepted answer, a part headed
    "Resolution", the answer of a FAQ."""


class Thread(msgspec.Struct, frozen=True):
    """One case as its source holds it."""

    source: str
    """The file below the imported folder, with "#part" where it holds several; unique in it."""
    title: str
    posts: tuple[Post, ...]
    url: str | None = None
    opened: datetime | None = None
    closed: datetime | None = None
    state: str = ""
    """As the tracker says it, in lower case: open, closed, completed, not_planned, duplicate."""
    labels: tuple[str, ...] = ()
    duplicate_of: str | None = None
    """What the tracker or a post names: a number, a key or an address."""


class Resolution(msgspec.Struct, frozen=True):
    """What ended a case, quoted and never rephrased."""

    quote: str
    role: Role
    time: datetime | None = None


class Report(msgspec.Struct, frozen=True):
    """One unreviewed report, as it is searched and shown; people, hosts and secrets are masked."""

    id: str
    """Stable: a digest of the name of the import and the source."""
    source: str
    """As in the thread."""
    title: str
    symptom: str
    """Title's story: the first post without templates, quotes and dumps of the environment."""
    lines: tuple[str, ...] = ()
    """The lines of logs in it that matter, masked as evidence is."""
    environment: tuple[str, ...] = ()
    """Systems and versions, such as "pytorch 2.4.0"."""
    url: str | None = None
    opened: datetime | None = None
    resolution: Resolution | None = None
    resolved: bool = False
    """Somebody said or showed that it is solved. Closed by a stale bot is not solved."""
    duplicate_of: str | None = None
    """The thread that it is called a duplicate of: a number, a key or an address."""
    rest: str = ""
    """What else the whole thread says, each word once: searched, and never shown."""
    seen: int = 1
    """Number of reports that were merged into this one, with itself."""
