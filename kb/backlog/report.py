"""From a thread to a report: symptom, lines, environment, and the resolution as it was written."""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Iterator
from functools import cache
from itertools import islice

import msgspec

from index.signatures import Scanner
from kb.backlog.gist import rest_of
from kb.backlog.markup import without_tags
from kb.backlog.model import Report, Resolution, Thread
from kb.backlog.people import hidden
from kb.backlog.resolution import ending
from kb.backlog.story import told
from kb.contribute.neutral import neutral
from kb.evidence import EvidenceLine, collect
from kb.evidence.accelerators import products_in
from kb.evidence.markers import MARKER_PATTERNS, Grade
from kb.evidence.secrets import blank_secrets
from kb.evidence.systems import systems_in, versions_in
from kb.log import Log

_MAX_LINES = 12
"""Lines of logs that are kept."""
_MAX_LINE_CHARACTERS = 300
_MAX_PRINTED_CHARACTERS = 40_000
"""Of code and logs in a post that are looked through; trackers allow 65,536 in all."""
_MAX_FACTS = 12
_MAX_TITLE_CHARACTERS = 300
_MIN_CHARACTERS = 10
"""Of title and symptom together; less cannot be searched."""
_MIN_ANSWERED = 3
"""... but for a question that has an answer: in Chinese a few characters say much."""
_ID_CHARACTERS = 16
_MAY_HOLD_A_SECRET = re.compile(r"[@?;]")
"""Of an address; to look closer takes a while, and most have none of these."""
_REMARK = re.compile(r"\s*(?:#|//)")
"""What a script says to its readers: nothing that it prints."""
_PERSON = re.compile(r"(?<=://)[^/?#]*@")


def to_report(thread: Thread, name: str) -> Report | None:
    """The report of a thread in the import `name`; None where nothing in it can be searched."""
    first = told(thread.posts[0].text) if thread.posts else told("")
    title = _title(thread.title)
    end = ending(thread)
    if len(title) + len(first.story) < (_MIN_ANSWERED if end.resolution else _MIN_CHARACTERS):
        return None
    report = Report(
        id=hashlib.sha256(f"{name}\0{thread.source}".encode()).hexdigest()[:_ID_CHARACTERS],
        source=thread.source,
        title=hidden(title),
        symptom=hidden(first.story),
        lines=_lines(first.printed),
        environment=tuple(_environment(f"{thread.title}\n{thread.posts[0].text}"))
        if thread.posts
        else (),
        url=thread.url,
        opened=thread.opened,
        resolution=_masked(end.resolution),
        resolved=end.resolved,
        duplicate_of=end.duplicate_of,
    )
    return msgspec.structs.replace(report, rest=rest_of(thread, report))


def with_safe_address(thread: Thread) -> Thread:
    """A thread whose address holds no person, no password and no token."""
    if thread.url is None or not _MAY_HOLD_A_SECRET.search(thread.url):
        return thread
    return msgspec.structs.replace(thread, url=blank_secrets(_PERSON.sub("", thread.url)))


def _title(title: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(without_tags(title)))[:_MAX_TITLE_CHARACTERS].strip()


def _masked(resolution: Resolution | None) -> Resolution | None:
    if resolution is None:
        return None
    quote = hidden(resolution.quote).strip()
    return msgspec.structs.replace(resolution, quote=quote) if quote else None


def _lines(printed: str) -> tuple[str, ...]:
    """The lines that report an error, or else those that hint at one, in their order."""
    if not printed.strip():
        return ()
    evidence = collect(
        Log.from_text(printed[:_MAX_PRINTED_CHARACTERS]).blocks(), _no_signatures(), _markers()
    )
    chosen: list[EvidenceLine] = []
    for least in (Grade.ERROR, Grade.HINT):
        chosen = [
            line
            for line in evidence.lines
            if line.grade >= least and not _REMARK.match(line.masked)
        ][:_MAX_LINES]
        if chosen:
            break
    ordered = sorted(chosen, key=lambda line: line.number)
    masked = hidden(neutral("\n".join(line.masked[:_MAX_LINE_CHARACTERS] for line in ordered)))
    return tuple(dict.fromkeys(filter(None, masked.split("\n"))))


def _environment(text: str) -> Iterator[str]:
    text = text[:_MAX_PRINTED_CHARACTERS]
    versions = versions_in(text)
    yield from (f"{name} {version}" for name, version in list(versions.items())[:_MAX_FACTS])
    yield from (name for name in systems_in(text)[:_MAX_FACTS] if name not in versions)
    yield from dict.fromkeys(islice(products_in(text), _MAX_FACTS))


@cache
def _markers() -> Scanner:
    return Scanner(MARKER_PATTERNS, first_only=False)


@cache
def _no_signatures() -> Scanner:
    return Scanner(())
