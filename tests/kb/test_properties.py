"""What holds of any text: found by hypothesis, not by example."""

from __future__ import annotations

import gzip
import re
from contextlib import suppress
from datetime import date

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from index.documents import Pattern
from index.signatures import Scanner
from kb.errors import IncidentError, LogError
from kb.evidence import collect
from kb.evidence.secrets import mask_secrets
from kb.guides import GUIDE_KINDS
from kb.incident import (
    Body,
    Certainty,
    Checked,
    Distinction,
    Environment,
    EvidenceBlock,
    FixedIn,
    Header,
    Incident,
    Kind,
    Signature,
    Step,
    Strength,
    Topology,
)
from kb.log import Log
from kb.log.clean import clean_block, strip_controls
from kb.log.mask import mask
from kb.markdown import parse, render
from tests.scanners import markers

pytestmark = pytest.mark.slow


# The same texts in every run: a change is not to fail by what another one broke. New ones are
# tried by `make fuzz`.
settings.register_profile(
    "kb",
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("kb")

SIGNATURES = Scanner([Pattern("needle in a haystack")])

LETTERS = some.characters(exclude_categories=("Cs",))
TEXT = some.text(LETTERS, max_size=300)
LOGGED = some.lists(
    some.one_of(
        TEXT,
        some.sampled_from(
            ["RuntimeError: boom", "[rank3]: NCCL WARN x", "\x1b[31mred\x1b[0m", "50%|###\r51%|###"]
        ),
    )
).map("\n".join)

WORD = some.from_regex(r"[a-z0-9]{1,8}", fullmatch=True)
NAME = some.lists(WORD, min_size=1, max_size=3).map("-".join)
PROSE = some.lists(
    some.from_regex(r"[A-Za-zäß进程][A-Za-z0-9 ,.:;()'\"%/äß进程-]{0,40}[a-z.]", fullmatch=True),
    min_size=1,
    max_size=3,
).map("\n".join)
LINE = PROSE.map(lambda text: text.split("\n")[0])
PRINTED = some.characters(
    min_codepoint=32, max_codepoint=0x3000, exclude_categories=("Cc", "Cs", "Zl", "Zp")
)
CODE = some.text(PRINTED, min_size=1, max_size=80).filter(lambda text: text == text.strip())

HEADERS = some.builds(
    Header,
    id=NAME,
    title=LINE,
    kind=some.sampled_from(sorted(set(Kind) - GUIDE_KINDS)),
    caution=some.none() | LINE,
    systems=some.lists(WORD, min_size=1, max_size=3).map(tuple),
    environment=some.builds(
        Environment,
        frameworks=some.dictionaries(WORD, LINE, max_size=2),
        hardware=LINE,
        topology=some.sampled_from(Topology),
    ),
    signatures=some.lists(
        some.builds(
            Signature,
            pattern=CODE.filter(lambda text: len(text) > 3),
            strength=some.sampled_from(Strength),
            regex=some.just(False),
        ),
        max_size=2,
    ).map(tuple),
    fixed_in=some.lists(
        some.builds(
            FixedIn,
            system=NAME,
            version=some.none() | some.from_regex(r"\d{1,2}(\.\d{1,2}){0,2}", fullmatch=True),
            change=some.none() | some.just("https://example.org/change"),
            note=some.none() | LINE,
        ),
        max_size=2,
    ).map(tuple),
    references=some.just(("https://example.org/thread",)),
    confidence=some.sampled_from(Certainty),
    checked=some.none()
    | some.builds(Checked, date=some.dates(min_value=date(2000, 1, 1)), by=LINE),
    aliases=some.lists(LINE, max_size=2).map(tuple),
    created=some.dates(min_value=date(2000, 1, 1)),
    updated=some.dates(min_value=date(2000, 1, 1)),
)
BODIES = some.builds(
    Body,
    symptom=PROSE,
    setting=PROSE,
    cause=PROSE,
    fix=some.lists(
        some.builds(
            Step,
            text=LINE,
            command=some.none() | CODE,
            language=some.just(""),
            why=some.none() | LINE,
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
    verify=PROSE,
    prevention=some.none() | PROSE,
    distinguish=some.lists(
        some.builds(Distinction, other=NAME, question=LINE.map(lambda text: f"{text}?")), max_size=2
    ).map(tuple),
    evidence=some.lists(
        some.builds(EvidenceBlock, text=CODE, source=some.none() | LINE), min_size=1, max_size=2
    ).map(tuple),
)
RECORDS = some.builds(Incident, HEADERS, BODIES)


@given(RECORDS)
def test_a_record_comes_back_as_it_was(record: Incident) -> None:
    assert parse(render(record)) == record


@given(some.text(LETTERS, max_size=2000))
def test_any_text_is_a_record_or_is_refused_with_a_place(text: str) -> None:
    for candidate in (text, f"---\n{text}\n---\n\n## Symptom\n"):
        try:
            parse(candidate)
        except IncidentError as error:
            last = len(re.split(r"\r\n|\r|\n", candidate))  # CommonMark, 2.1
            assert all(1 <= p.line <= last for p in error.problems)  # noqa: PT017


@given(TEXT)
def test_masks_and_printable_text_are_final(text: str) -> None:
    for hide in (mask_secrets, strip_controls):
        assert hide(hide(text)) == hide(text)
    assert mask(text).count("\n") <= text.count("\n")
    assert mask_secrets(text).count("\n") == text.count("\n")


@given(some.integers(0, 10**9), some.integers(0, 10**9), some.ip_addresses(v=4))
def test_a_mask_does_not_depend_on_numbers(first: int, second: int, address: object) -> None:
    prints = [
        f"rank {n} of {address}:{n % 65536} took {n}.5 ms at 0x{n:x}" for n in (first, second)
    ]
    assert mask(prints[0]) == mask(prints[1])


@given(some.binary(max_size=3000))
def test_bytes_become_clean_lines_without_gaps(data: bytes) -> None:
    line = 1
    with suppress(LogError):  # of what begins like an archive, and is none
        for block in Log.from_bytes(data).blocks():
            assert block.first_line == line
            line += block.line_count
            assert clean_block(block.data) == block.data
            shown = strip_controls(block.data.decode("utf-8", "replace"))
            assert not [c for c in shown if c < " " and c != "\n"]


@given(LOGGED)
def test_compression_changes_nothing(text: str) -> None:
    data = text.encode()
    plain = [block.data for block in Log.from_bytes(data).blocks()]
    if not data.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        for packed in (gzip.compress(data), zstandard.compress(data)):
            assert [block.data for block in Log.from_bytes(packed).blocks()] == plain


@given(LOGGED, some.integers(0, 50))
def test_evidence_stands_where_it_says(text: str, before: int) -> None:
    log = "calm\n" * before + "x needle in a haystack y\n" + text
    lines = clean_block(log.encode()).decode().split("\n")
    evidence = collect(Log.from_text(log).blocks(), SIGNATURES, markers())
    for line in [*evidence.lines, *(hit.line for hit in evidence.hits)]:
        if len(line.text) < 500 and not ("\r" in log or "\x00" in log):
            assert line.text == strip_controls(lines[line.number - 1]).rstrip()
    assert min(hit.line.number for hit in evidence.hits) == before + 1


@given(LOGGED)
def test_evidence_of_the_same_log_is_the_same(text: str) -> None:
    first, second = (collect(Log.from_text(text).blocks(), SIGNATURES, markers()) for _ in "12")
    assert first == second
