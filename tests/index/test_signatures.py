"""Many patterns at once, in linear time, and back from disk."""

from __future__ import annotations

import pytest

from index.documents import Pattern
from index.errors import PatternError
from index.signatures import Scanner, check

PATTERNS = [Pattern("NCCL WARN"), Pattern(r"Xid \(\S+\): 7\d", regex=True), Pattern("a.b(c")]


def test_each_pattern_reports_its_first_match_in_a_block() -> None:
    block = b"x NCCL WARN y\nNCCL WARN\nXid (PCI:0): 79\n"
    assert Scanner(PATTERNS).scan(block) == [(0, 11), (1, 39)]


def test_without_first_only_every_match_is_reported() -> None:
    found = Scanner(PATTERNS, first_only=False).scan(b"NCCL WARN NCCL WARN")
    assert [number for number, _end in found] == [0, 0]


def test_literals_are_literal() -> None:
    assert [n for n, _ in Scanner(PATTERNS).scan(b"axb(c a.b(c")] == [2]
    assert Scanner(PATTERNS).scan(b"axb(c") == []


def test_matching_stays_within_a_line() -> None:
    assert Scanner([Pattern("a.*b", regex=True)]).scan(b"a\nb") == []


def test_dumped_scanner_finds_the_same() -> None:
    block = b"NCCL WARN Xid (PCI:0): 71"
    blob = Scanner(PATTERNS).dump()
    assert Scanner.cached(PATTERNS, blob).scan(block) == Scanner(PATTERNS).scan(block)


@pytest.mark.parametrize("blob", [None, b"", b"rubbish", Scanner([Pattern("other")]).dump()])
def test_foreign_or_damaged_dump_is_compiled_again(blob: bytes | None) -> None:
    assert Scanner.cached(PATTERNS, blob).scan(b"NCCL WARN") == [(0, 9)]


def test_dump_that_was_cut_is_compiled_again() -> None:
    blob = Scanner(PATTERNS).dump()
    assert Scanner.cached(PATTERNS, blob[: len(blob) // 2]).scan(b"NCCL WARN") == [(0, 9)]


@pytest.mark.parametrize("text", ["(", "a*", r"(a)\1", "(?<=a)b", "[z-a]"])
def test_pattern_that_cannot_run_in_linear_time_is_refused(text: str) -> None:
    with pytest.raises(PatternError):
        check(Pattern(text, regex=True))
    with pytest.raises(PatternError):
        Scanner([Pattern("fine"), Pattern(text, regex=True)])


def test_no_patterns_find_nothing() -> None:
    assert Scanner([]).scan(b"anything") == []
