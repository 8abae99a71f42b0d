"""Lines that a condition picks are the same as those that one finds by reading all."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from kb.log.speakers import learn_way
from tui.conditions import every, said_by, with_text
from tui.lines import CHUNK_BYTES, Lines
from tui.picked import Picked, hunt

pytestmark = pytest.mark.slow

LENGTHS = (0, 3, 80, 200, 5000, CHUNK_BYTES - 7, 3 * CHUNK_BYTES)


def texts(count: int) -> list[str]:
    """Lines of all lengths; every eleventh has an `oom` at its beginning."""
    return [
        f"{number} {'oom' if number % 11 == 5 else 'ok'} {'x' * LENGTHS[number * 7 % 23 % 7]}"
        for number in range(1, count + 1)
    ]


def last(numbers: Iterator[int | None]) -> int | None:
    return list(numbers)[-1]


@pytest.mark.parametrize("count", [0, 1, 5, 300])
@pytest.mark.parametrize("end", ["", "\n"])
def test_all_and_only_the_lines_with_a_text(count: int, end: str) -> None:
    lines = Lines.from_text("\n".join(texts(count)) + end)
    wanted = [number for number in range(1, count + 1) if number % 11 == 5]
    picked = Picked(lines, with_text("oom"))
    assert last(picked.find()) == len(wanted)
    assert [picked.number(row) for row in range(picked.count)] == wanted
    assert picked.number(len(wanted)) is None
    for number in range(1, count + 1):
        assert picked.row(number) == sum(one < number for one in wanted)
        assert picked.has_come_to(number)


def test_the_nearest_line_in_both_directions_and_around_the_ends() -> None:
    lines = Lines.from_text("\n".join(texts(300)))
    wanted = [number for number in range(1, 301) if number % 11 == 5]
    for number in (1, 5, 6, 150, 291, 300):
        later = [one for one in wanted if one > number]
        earlier = [one for one in wanted if one < number]
        assert last(hunt(lines, with_text("oom"), number, 1)) == (later or wanted)[0]
        assert last(hunt(lines, with_text("oom"), number, -1)) == (earlier or wanted)[-1]
    assert last(hunt(lines, with_text("absent"), 7, 1)) == 0


def test_what_is_added_is_found_as_well(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("oom 1\nfine\noo")
    lines = Lines.open(path)
    picked = Picked(lines, with_text("oom"))
    assert last(picked.find()) == 1
    for size in (1, 40_000, 100_000):
        with path.open("a") as file:
            file.write(f"m\n{'x' * size}\noo")
        assert lines.grow()
        assert last(picked.find()) == sum("oom" in line for line in path.read_text().split("\n"))
    assert lines.line_count == path.read_text().count("\n") + 1


def test_capitals_count_if_some_are_typed() -> None:
    lines = Lines.from_text("OOM\noom\nOom 显存\n")
    assert last(Picked(lines, with_text("oom")).find()) == 3
    assert last(Picked(lines, with_text("Oom")).find()) == 1
    assert last(Picked(lines, with_text("显存")).find()) == 1


def test_ranks_and_hosts_by_who_says_a_line() -> None:
    said = [
        "[rank3]: RuntimeError",
        "[rank13]: RuntimeError",
        "step 3 of 3",
        "node-1: [rank3]: lost rank 1",
        "\x1b[31m[rank1]: red\x1b[0m",
    ]
    lines = Lines.from_text("\n".join(said))

    def of(rank: int | None, host: str | None = None) -> list[int | None]:
        picked = Picked(lines, said_by(rank, host, None))
        return [picked.number(row) for row in range(last(picked.find()) or 0)]

    assert of(3) == [1, 4]
    assert of(13) == [2]
    assert of(1) == [5]
    assert of(0) == []


def test_ranks_in_a_way_of_the_job_itself() -> None:
    said = [f"(worker {n % 3}) batch {n} is done" for n in range(60)]
    lines = Lines.from_text("\n".join(said))
    both = every([said_by(2, None, learn_way(said)), with_text("batch 5 ")])
    picked = Picked(lines, both)
    assert last(picked.find()) == 1
    assert picked.number(0) == 6


def test_memory_does_not_grow_with_what_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("oom again and again\n" * 1_000_000)
    tracemalloc.start()
    picked = Picked(Lines.open(path), with_text("oom"))
    assert last(picked.find()) == 1_000_000
    assert picked.number(999_999) == 1_000_000
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000
