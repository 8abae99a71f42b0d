from __future__ import annotations

import codecs
import gzip
import os
import tracemalloc
from pathlib import Path

import pytest
import zstandard

from kb.errors import LogError
from kb.log import Log
from tui import lines as lines_module
from tui.lines import HEAD_BYTES, TAIL_BYTES, Lines

pytestmark = pytest.mark.slow


def counted(lines: Lines) -> Lines:
    for _known in lines.count():
        pass
    return lines


def shown(lines: Lines) -> list[str | None]:
    return [lines.line(number) for number in range(1, lines.line_count + 1)]


def of_bytes(data: bytes) -> list[str | None]:
    return shown(counted(Lines.from_bytes(data)))


@pytest.fixture(scope="module")
def long_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two million numbered lines of unequal length."""
    path = tmp_path_factory.mktemp("long") / "rank0.log"
    with path.open("w") as file:
        file.writelines(f"line {number} {'.' * (number % 50)}\n" for number in range(1, 2_000_001))
    return path


def test_every_line_of_a_long_log_is_found_by_its_number(long_log: Path) -> None:
    lines = counted(Lines.open(long_log))
    assert lines.line_count == 2_000_000
    for number in (1, 2, 999, 65_536, 1_234_567, 1_999_999, 2_000_000):
        text = lines.line(number)
        assert text is not None
        assert text.split()[1] == str(number)
    assert lines.line(2_000_001) is None


def test_memory_does_not_grow_with_the_log(long_log: Path) -> None:
    tracemalloc.start()
    lines = counted(Lines.open(long_log))
    lines.line(2_000_000)
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000 < long_log.stat().st_size


def test_the_first_lines_are_there_before_the_rest_is_counted(
    long_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines_module, "_BATCH_SECONDS", 1e-9)
    lines = Lines.open(long_log)
    seen = []
    for known in lines.count():
        seen.append(known)
        assert known < 2
        assert lines.line(1) == "line 1 ."
        break
    seen += list(lines.count())
    assert seen == sorted(seen)
    assert len(seen) > 3
    assert seen[-1] == 2_000_000


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"one", ["one"]),
        (b"one\n", ["one"]),
        (b"one\n\nthree", ["one", "", "three"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"one\rtwo\rthree", ["one", "two", "three"]),
        (b"bad \xff\xfe bytes", ["bad \\xff\\xfe bytes"]),
    ],
)
def test_what_counts_as_a_line(data: bytes, expected: list[str]) -> None:
    assert of_bytes(data) == expected


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 131_072])
@pytest.mark.parametrize("end", ["", "\n"])
def test_lines_around_the_borders_of_what_is_read_at_once(size: int, end: str) -> None:
    text = "".join(f"{number:06d} {'x' * 56}\n" for number in range(3000))[: size - len(end)] + end
    assert of_bytes(text.encode()) == text.removesuffix("\n").split("\n")


@pytest.mark.parametrize(
    "pack",
    [
        gzip.compress,
        zstandard.ZstdCompressor().compress,
        lambda data: codecs.BOM_UTF16_LE + data.decode().encode("utf-16-le"),
        lambda data: data.decode().encode("utf-16-be"),
        lambda data: data.replace(b"\n", b"\r"),
        lambda data: data.replace(b"\n", b"\r\n"),
    ],
    ids=["gzip", "zstd", "utf-16 with a mark", "utf-16", "CR", "CRLF"],
)
def test_numbers_are_those_of_the_evidence(pack, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    text = "".join(f"step {number} 损失\n" for number in range(1, 30_000))
    path = tmp_path / "packed.log"
    path.write_bytes(pack(text.encode()))
    lines = counted(Lines.open(path))
    read = b"".join(block.data for block in Log.from_paths([path]).blocks()).decode().splitlines()
    assert shown(lines)[:200] == read[:200]
    assert lines.line_count == len(read)
    assert lines.line(29_999) == "step 29999 损失"
    assert lines.notices == []


def test_a_damaged_archive_is_shown_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(os.urandom(3_000_000).hex().encode() + b"\nend\n")[:1_000_000])
    lines = counted(Lines.open(path))
    assert lines.line_count == 1
    assert len(lines.notices) == 1
    assert "damaged" in lines.notices[0]


def test_of_a_huge_archive_the_beginning_is_shown_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines_module, "MAX_UNPACKED_BYTES", 5_000_000)
    path = tmp_path / "huge.log.gz"
    path.write_bytes(gzip.compress(b"0123456789\n" * 2_000_000))
    lines = counted(Lines.open(path))
    assert 5_000_000 / 11 <= lines.line_count < 8_000_000 / 11
    assert lines.notices == ["only the first 5 MB of huge.log.gz are shown"]


def test_of_an_endless_line_the_beginning_and_the_end_are_shown() -> None:
    data = b"before\nBEGIN " + "火".encode() * 10_000_000 + b" END\nafter\n"
    first, long, last = of_bytes(data)
    assert (first, last) == ("before", "after")
    assert long is not None
    assert long.startswith("BEGIN 火火")
    assert long.endswith("火 END")
    assert "bytes are not shown" in long
    assert "\\x" not in long
    assert len(long) < HEAD_BYTES + TAIL_BYTES


def test_a_line_that_is_just_short_enough_is_whole() -> None:
    whole = b"x" * (HEAD_BYTES + TAIL_BYTES)
    assert of_bytes(whole + b"\nnext\n") == [whole.decode(), "next"]
    assert "1 bytes are not shown" in str(of_bytes(b"x" + whole)[0])


def test_progress_bars_are_collapsed_as_in_evidence() -> None:
    bar = "".join(f"\r{percent:3d}%|{'#' * 10}| {percent}/100" for percent in range(100))
    assert of_bytes(f"{bar}\rTraceback (most recent call last):\nnext".encode()) == [
        "Traceback (most recent call last):",
        "next",
    ]


def test_control_sequences_are_text() -> None:
    (line,) = of_bytes(b"\x1b[31mred\x1b[0m \x1b]0;title\x07 [bold]b[/] \x00\x7f\xe2\x80\xae\tx\n")
    assert line is not None
    assert line.startswith("^[[31mred^[[0m ^[]0;title^G [bold]b[/] ^@^?<U+202E>")
    assert line.endswith(" x")
    assert line.isprintable()


def test_a_file_that_shrinks_while_it_is_shown(long_log: Path, tmp_path: Path) -> None:
    path = tmp_path / "rotated.log"
    path.write_bytes(long_log.read_bytes()[:5_000_000])
    lines = counted(Lines.open(path))
    known = lines.line_count
    os.truncate(path, 100_000)
    assert lines.line(1) == "line 1 ."
    assert lines.line(known) is None
    os.truncate(path, 0)
    assert lines.line(1) is None


def test_a_file_that_shrinks_while_it_is_counted(long_log: Path, tmp_path: Path) -> None:
    path = tmp_path / "rotated.log"
    path.write_bytes(long_log.read_bytes())
    lines = Lines.open(path)
    os.truncate(path, 100_000)
    counted(lines)
    assert lines.line_count == path.read_bytes().count(b"\n") + 1
    assert lines.line(1) == "line 1 ."


def test_a_file_that_vanishes_is_still_shown(tmp_path: Path) -> None:
    path = tmp_path / "gone.log"
    path.write_text("one\ntwo\n")
    lines = Lines.open(path)
    path.unlink()
    assert shown(counted(lines)) == ["one", "two"]


def test_nothing_is_shown_after_it_is_closed() -> None:
    lines = counted(Lines.from_text("one\ntwo"))
    lines.close()
    assert lines.line(2) is None
    assert list(lines.count()) == []


@pytest.mark.parametrize("name", ["missing.log", "."])
def test_what_is_no_file_is_said(name: str, tmp_path: Path) -> None:
    with pytest.raises(LogError, match="cannot read"):
        Lines.open(tmp_path / name)
