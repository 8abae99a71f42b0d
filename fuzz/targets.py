"""What is fuzzed: each target takes any bytes and raises where a promise is broken.

tests/kb/test_fuzz_corpus.py runs the targets over every input that ever broke one.
"""

from __future__ import annotations

import os
import unicodedata
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from index.documents import Pattern
from index.signatures import Scanner
from kb.classify.journal import encode, read_rows
from kb.classify.result import Result
from kb.conversation import Conversation, begin, reply
from kb.corpus.base import KnowledgeBase
from kb.corpus.directories import IncidentDirectories
from kb.corpus.document import to_document
from kb.diagnosis import diagnose
from kb.diagnosis.scan import scan_log
from kb.errors import IncidentError, LogError, OutputError, SettingsError
from kb.evidence.markers import MARKER_PATTERNS
from kb.evidence.secrets import mask_secrets, without_secrets
from kb.history import History, Search
from kb.job import analyse
from kb.job.recorder import Dump, compare, read_dump
from kb.log import Block, Log, Source
from kb.log.clean import clean_block, strip_controls
from kb.markdown import parse, render
from kb.settings import Settings, load_settings

_ALLOWED = "\n\t"
_HALF = 2
_MAX_MESSAGES = 4
_ERROR = "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Zk2 (size 9637888)"


def record(data: bytes) -> None:
    """A record is refused with places and help, or comes back from its Markdown as it was."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return
    try:
        incident = parse(text, "fuzzed.md")
    except IncidentError as error:
        assert error.problems
        assert all(problem.line >= 1 and problem.help for problem in error.problems)
        return
    again = parse(render(incident), "rendered.md")
    assert again == incident, "the round trip changed the record"
    to_document(incident, data)


def evidence(data: bytes) -> None:
    """Of any log the evidence is clean text at the right lines, and a job of two logs is told."""
    half = len(data) // _HALF
    parts = {"node-1/rank_0.log": data[:half], "trace_1": data[half:]}
    sources = [part for name, text in parts.items() for part in _sources(text, name)]
    for log in (Log.from_bytes(data), Log(sources)):
        try:
            reading = scan_log(log, _signatures(), _markers())
        except LogError:  # it begins like an archive, and is none
            continue
        found = reading.collector.evidence()
        for line in [*found.lines, *(hit.line for hit in found.hits)]:
            assert 1 <= line.number <= max(found.total_lines, 1), line
            _check_clean(line.text)
            _check_clean(line.masked)
        job = analyse(reading.files, reading.dumps, reading.damaged_dumps)
        for culprit in job.job.culprits if job else ():
            _check_clean(culprit.text or "")


def log(data: bytes) -> None:
    """The lines of any bytes are numbered without gaps, and none of them drives a terminal."""
    line = 1
    for block in _blocks(data):
        assert block.first_line == line
        line += block.line_count
        assert block.line_count >= block.data.count(b"\n")
        assert b"\x1b" not in block.data
        assert b"\0" not in block.data
        assert clean_block(block.data) == block.data, "cleaning twice changes more"
        text = block.data.decode("utf-8", "replace")
        for shown in map(strip_controls, text.split("\n")):
            _check_clean(shown)
        masked = mask_secrets(text)
        assert masked.count("\n") == text.count("\n")
        assert mask_secrets(masked) == masked, "masking twice changes more"


def dump(data: bytes) -> None:
    """Two dumps are compared, or are none; what is said of them can be written."""
    half = len(data) // _HALF
    halves = enumerate((data[:half], data[half:]))
    named = [source for n, part in halves for source in _sources(part, f"nccl_trace_{n}")]
    for sources in (_sources(data, "nccl_trace_0"), named):
        read = [one for one in map(read_dump, sources) if isinstance(one, Dump)]
        found = compare(read) if read else None
        for _file, described in found.culprits.values() if found else ():
            described.encode()


def results(data: bytes) -> None:
    """Rows of results are refused in one sentence, or come back as they were."""
    with _file("results.jsonl", data) as path:
        try:
            rows = read_rows(path)
        except OutputError as error:
            _check_clean(str(error))
            return
        path.write_bytes(encode([Result.from_row(row) for row in rows]))
        again = read_rows(path)
        assert len(again) == len(rows), "a row is lost"
        path.write_bytes(encode([Result.from_row(row) for row in again]))
        assert read_rows(path) == again, "reading twice changes more"


def history(data: bytes) -> None:
    """A history of any bytes is read or set aside, and takes the next search."""
    with _file("history.json", data) as path, patch.dict(os.environ, KB_STATE=str(path.parent)):
        notices: list[str] = []
        kept = History(Settings(), notices.append)
        before = kept.load()
        new = Search.of(_conversation().diagnosis, "a search")
        kept.add(new)
        after = kept.load()
        assert after[0].text == "a search"
        assert len(after) >= min(len(before), 1)
        assert all(notices)


def chat(data: bytes) -> None:
    """Whatever is said, each turn is answered in clean text; a NUL stands between two messages."""
    conversation = _conversation()
    for said in data.decode("utf-8", "replace").split("\0")[:_MAX_MESSAGES]:
        after = reply(conversation, said, _knowledge())
        new = after.turns[len(conversation.turns) :]
        assert len(new) in (0, 2)
        for turn in new:
            assert turn.text.strip()
            _check_clean(turn.text)
        shares = [match.confidence for match in after.matches]
        assert shares == sorted(shares, reverse=True)
        assert all(0 <= share <= 1 for share in shares)
        conversation = after


def settings(data: bytes) -> None:
    """A configuration is read, or refused in one sentence."""
    with _file("config.toml", data) as path, patch.dict(os.environ, KB_CONFIG=str(path)):
        try:
            load_settings()
        except SettingsError as error:
            assert str(error)


def secrets(data: bytes) -> None:
    """Masking keeps the lines, and a masked text stays as it is."""
    text = data.decode("utf-8", "replace")
    masked = mask_secrets(text)
    assert masked.count("\n") == text.count("\n")
    assert mask_secrets(masked) == masked, "masking twice changes more"
    named = without_secrets({"HF_TOKEN": text, "lines": text.split("\n")})
    assert without_secrets(named) == named, "masking values twice changes more"


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    "chat": chat,
    "dump": dump,
    "evidence": evidence,
    "history": history,
    "log": log,
    "record": record,
    "results": results,
    "secrets": secrets,
    "settings": settings,
}
"""By the name that `python -m fuzz` takes."""


def _sources(data: bytes, name: str) -> tuple[Source, ...]:
    return Log.from_bytes(data, name).sources


def _blocks(data: bytes) -> Iterator[Block]:
    """The lines; none of what begins like an archive, and is none."""
    with suppress(LogError):
        yield from Log.from_bytes(data).blocks()


def _check_clean(text: str) -> None:
    bad = [c for c in text if unicodedata.category(c) == "Cc" and c not in _ALLOWED]
    assert not bad, f"control characters: {bad!r}"


@contextmanager
def _file(name: str, data: bytes) -> Iterator[Path]:
    """A file in a directory of its own."""
    with TemporaryDirectory() as directory:
        path = Path(directory, name)
        path.write_bytes(data)
        yield path


@cache
def _knowledge() -> KnowledgeBase:
    """The shipped records, in a cache that is kept for this process alone."""
    cache_directory = TemporaryDirectory()
    with patch.dict(os.environ, KB_CACHE=cache_directory.name):
        knowledge = KnowledgeBase.open(Settings())
    weakref.finalize(knowledge, cache_directory.cleanup)
    return knowledge


@cache
def _conversation() -> Conversation:
    return begin(diagnose(Log.from_text(_ERROR), _knowledge()))


@cache
def _signatures() -> Scanner:
    """All patterns of the shipped records."""
    incidents, _problems = IncidentDirectories().load()
    return Scanner(
        [
            Pattern(signature.pattern, signature.regex)
            for incident in incidents
            for signature in incident.header.signatures
        ]
    )


@cache
def _markers() -> Scanner:
    return Scanner(MARKER_PATTERNS, first_only=False)
