"""What is fuzzed: each target takes any bytes and raises where a promise is broken.

tests/kb/test_fuzz_corpus.py runs the targets over every input that ever broke one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from functools import cache

from index.documents import Pattern
from index.signatures import Scanner
from kb.corpus.directories import IncidentDirectories
from kb.corpus.document import to_document
from kb.diagnosis.scan import scan_log
from kb.errors import IncidentError
from kb.evidence.markers import MARKER_PATTERNS
from kb.evidence.secrets import mask_secrets
from kb.job import analyse
from kb.log import Log, Source
from kb.log.clean import clean_block, strip_controls
from kb.markdown import parse, render

_ALLOWED = "\n\t"
_HALF = 2


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
        reading = scan_log(log, _signatures(), _markers())
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
    for block in Log.from_bytes(data).blocks():
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


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    "record": record,
    "evidence": evidence,
    "log": log,
}
"""By the name that `python -m fuzz` takes."""


def _sources(data: bytes, name: str) -> tuple[Source, ...]:
    return Log.from_bytes(data, name).sources


def _check_clean(text: str) -> None:
    bad = [c for c in text if unicodedata.category(c) == "Cc" and c not in _ALLOWED]
    assert not bad, f"control characters: {bad!r}"


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
