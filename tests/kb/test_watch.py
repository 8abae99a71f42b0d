"""Logs that grow: every byte is read once, and each incident is said once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kb.classify import Unit
from kb.service.service import Service
from kb.settings import Settings
from kb.verdict import Verdict
from kb.watch import Event, Watcher
from kb.watch.follow import Follower, is_copy
from kb.watch.trail import Trail

MUCH = 1 << 20
SHM = "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Zk2 (size 9637888)\n"
SHM_RECORD = "nccl-shm-too-small-container"
XID = "NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus.\n"
XID_RECORD = "xid79-gpu-fallen-off-bus"
PUMP = "RuntimeError: the flux capacitor of pump 7 is out of plutonium\n"
STEP = "2026-11-21 03:00:00 INFO step {} loss 2.31\n"
DONE = "2026-11-21 03:00:00 INFO training done after 400 steps, exiting with code 0\n"


def steps(count: int) -> str:
    return "".join(map(STEP.format, range(count)))


def append(path: Path, text: str | bytes) -> None:
    with path.open("ab") as file:
        file.write(text.encode() if isinstance(text, str) else text)


def news(follower: Follower, looks: int = 3) -> list[tuple[bytes, bool]]:
    """What some looks read."""
    return [(one.data, one.begins) for _ in range(looks) for one in follower.read(MUCH)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "train.log"


@pytest.fixture
def follower(log: Path) -> Iterator[Follower]:
    follower = Follower(log)
    yield follower
    follower.close()


def test_what_is_there_is_read_once_and_then_what_is_added(log: Path, follower: Follower) -> None:
    assert news(follower) == []
    append(log, "one\n")
    assert news(follower) == [(b"one\n", True)]
    append(log, "two\nthree\n")
    assert news(follower) == [(b"two\nthree\n", False)]


def test_a_line_is_read_when_it_is_whole(log: Path, follower: Follower) -> None:
    append(log, "one\ntw")
    assert news(follower) == [(b"one\n", True)]
    append(log, "o\n")
    assert news(follower) == [(b"two\n", False)]


def test_last_words_without_an_end_are_read_when_nothing_follows(
    log: Path, follower: Follower
) -> None:
    append(log, "one\nKilled")
    assert news(follower, looks=10) == [(b"one\n", True), (b"Killed", False)]


def test_a_progress_bar_without_end_comes_in_pieces(log: Path, follower: Follower) -> None:
    bar = b"\r 50%|#####     | 1/2 [00:01<00:01, 1.0it/s]" * 2_000
    append(log, bar)
    append(log, "\nRuntimeError: x\n")
    assert b"".join(data for data, _ in news(follower)).endswith(b"\nRuntimeError: x\n")


def test_a_renamed_log_is_read_to_its_end_and_then_the_new_one(
    log: Path, follower: Follower
) -> None:
    append(log, "one\n")
    assert news(follower) == [(b"one\n", True)]
    append(log, "two\n")
    log.rename(log.with_name("train.log.1"))
    append(log.with_name("train.log.1"), "three")
    append(log, "four\n")
    assert news(follower) == [(b"two\n", False), (b"three", False), (b"four\n", True)]


def test_a_parked_log_is_read_on_under_its_new_name(log: Path, follower: Follower) -> None:
    append(log, "one\n")
    assert news(follower, looks=1) == [(b"one\n", True)]
    follower.park()
    append(log, "two\n")
    assert news(follower, looks=1) == [(b"two\n", False)]
    follower.park()
    append(log, "three\n")
    log.rename(log.with_name("train.log.1"))
    append(log, "four\n")
    assert news(follower) == [(b"three\n", False), (b"four\n", True)]


def test_a_parked_log_that_was_removed_is_told_and_the_next_one_is_read(
    log: Path, follower: Follower
) -> None:
    append(log, "one\n")
    news(follower, looks=1)
    follower.park()
    append(log, "two\n")
    other = log.with_name("other")
    append(other, "three\n")
    other.replace(log)
    with pytest.raises(OSError, match="removed before its end was read"):
        news(follower)
    assert news(follower) == [(b"three\n", True)]


def test_parts_that_were_rotated_between_two_looks_are_read_in_turn(
    log: Path, follower: Follower
) -> None:
    append(log, "one\n")
    news(follower)
    for number, text in enumerate(("two\n", "three\n", "four\n")):
        append(log, text)
        os.utime(log, (number, number))
        log.rename(log.with_name(f"train.log.{3 - number}"))
    append(log, "five\n")
    os.utime(log, (9, 9))
    read = b"".join(data for data, _ in news(follower, looks=9))
    assert read == b"two\nthree\nfour\nfive\n"


def test_a_removed_log_is_read_to_its_end(log: Path, follower: Follower) -> None:
    append(log, "one\n")
    news(follower)
    append(log, "two\n")
    log.unlink()
    assert news(follower) == [(b"two\n", False)]
    assert not follower.is_open
    append(log, "three\n")
    assert news(follower) == [(b"three\n", True)]


def test_of_a_truncated_log_the_copy_tells_what_came_last(log: Path, follower: Follower) -> None:
    append(log, steps(3))
    news(follower)
    append(log, "two\n")
    log.with_name("train.log.1").write_bytes(log.read_bytes())
    os.truncate(log, 0)
    append(log, "three\n")
    assert news(follower) == [(b"two\n", False), (b"three\n", True)]


def test_a_log_that_grew_beyond_its_old_length_after_a_truncation_is_read_anew(
    log: Path, follower: Follower
) -> None:
    append(log, "one\n")
    news(follower)
    os.truncate(log, 0)
    append(log, "another one\n")
    assert news(follower) == [(b"another one\n", True)]


@pytest.mark.skipif(not hasattr(os, "SEEK_DATA"), reason="the system has no holes")
def test_the_hole_that_a_truncation_leaves_is_not_read(log: Path, follower: Follower) -> None:
    append(log, "one\n")
    with log.open("r+b") as writer:
        writer.seek(0, os.SEEK_END)
        news(follower)
        os.truncate(log, 0)
        writer.seek(1 << 40)
        writer.write(b"two\n")
    assert news(follower) == [(b"two\n", True)]


@pytest.mark.parametrize("head", [b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd", b"\xff\xfea\x00\n\x00"])
def test_what_does_not_grow_as_text_is_named_and_left(
    log: Path, follower: Follower, head: bytes
) -> None:
    append(log, head * 100)
    assert news(follower) == []
    assert follower.unfit


@pytest.mark.parametrize(
    "name",
    ["train.log.1", "train.log.2.gz", "train.log-20261121", "train.log.old", "train.log.zst"],
)
def test_rotated_parts_are_copies_of_the_log_beside_them(log: Path, name: str) -> None:
    assert not is_copy(log.with_name(name))
    log.touch()
    assert is_copy(log.with_name(name))
    assert not is_copy(log)


def test_ranks_are_no_copies_of_each_other(tmp_path: Path) -> None:
    for rank in range(12):
        (tmp_path / f"rank.{rank}").touch()
        (tmp_path / f"rank-{rank}.log").touch()
    assert not any(map(is_copy, tmp_path.iterdir()))


def test_the_lines_of_a_window_have_the_numbers_of_the_file() -> None:
    trail = Trail("train.log", MUCH)
    trail.add(steps(1000).encode(), begins=True)
    trail.mark([], 0)
    trail.add((PUMP + steps(500)).encode(), begins=False)
    trail.mark([1001], 0)
    (window,) = trail.take(0)
    numbers = {
        text: block.number_of(place)
        for source in window.sources()
        for block in source.blocks()
        for place, text in enumerate(block.data.decode().splitlines(keepends=True))
    }
    assert numbers[PUMP] == 1001
    assert numbers[STEP.format(0)] in (1, 1002)
    assert numbers[STEP.format(999)] == 1000


def test_trouble_that_has_just_begun_waits_for_its_end() -> None:
    trail = Trail("train.log", MUCH)
    trail.add((PUMP + steps(500)).encode(), begins=True)
    trail.mark([1], 0)
    trail.add((XID + steps(10)).encode(), begins=False)
    trail.mark([502], 9)
    (first,) = trail.take(8)
    assert PUMP.encode() in first.parts[0].data
    assert XID.encode() not in b"".join(part.data for part in first.parts)
    assert trail.take(8) == []
    (second,) = trail.take(10)
    assert XID.encode() in second.parts[-1].data


def test_much_that_was_read_before_does_not_cut_trouble_in_two() -> None:
    trail = Trail("train.log", 1 << 15)
    trail.add((steps(2000) + PUMP).encode(), begins=True)
    trail.mark([2001], 0)
    trail.add((XID + steps(10)).encode(), begins=False)
    trail.mark([2002], 0)
    (window,) = trail.take(0)
    assert (PUMP + XID).encode() in window.parts[-1].data


def test_a_window_is_bounded_and_keeps_its_begin_and_its_end() -> None:
    trail = Trail("train.log", 1 << 14)
    trail.add((PUMP + "x" * (1 << 20) + "\n" + XID).encode(), begins=True)
    trail.mark([1, 3], 0)
    (window,) = trail.take(0)
    assert window.size <= 1 << 15
    assert window.parts[0].data.startswith(PUMP.encode())
    assert window.parts[-1].data.endswith(XID.encode())


@pytest.fixture(scope="module")
def service(built_cache: Path) -> Iterator[Service]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KB_CACHE", str(built_cache))
        with Service(Settings()) as service:
            yield service


Watch = Callable[..., Watcher]


@pytest.fixture
def watch(service: Service, notices: list[str]) -> Iterator[Watch]:
    opened: list[Watcher] = []

    def watch(*paths: Path, unit: Unit = Unit.JOB) -> Watcher:
        opened.append(Watcher(paths, unit, service, notices.append))
        return opened[-1]

    yield watch
    for watcher in opened:
        watcher.__exit__()


@pytest.fixture
def notices() -> list[str]:
    return []


def said(watcher: Watcher) -> list[Event]:
    """What a watch says when it reads to the end and is told to say what it knows."""
    events = list(watcher.look())
    while watcher.behind:
        events += watcher.look()
    return [*events, *watcher.finish()]


def test_an_incident_is_said_once_with_its_line(log: Path, watch: Watch) -> None:
    watcher = watch(log)
    append(log, steps(700))
    assert said(watcher) == []
    append(log, f"[rank3]: {SHM}{steps(700)}")
    (event,) = said(watcher)
    assert event.verdict.is_found
    assert event.incident == SHM_RECORD
    assert (event.file, event.line, event.rank) == ("train.log", 701, 3)
    append(log, f"[rank3]: {SHM}{steps(700)}")
    assert said(watcher) == []


def test_incidents_that_are_far_apart_are_told_apart(log: Path, watch: Watch) -> None:
    append(log, f"{steps(700)}{SHM}{steps(700)}{XID}{steps(700)}")
    events = said(watch(log))
    assert [(one.incident, one.line) for one in events] == [(SHM_RECORD, 701), (XID_RECORD, 1402)]


def test_a_failure_that_nothing_known_fits_is_said_once_a_kind(log: Path, watch: Watch) -> None:
    append(log, f"{steps(400)}{PUMP}{steps(400)}{PUMP.replace('7', '8')}")
    (event,) = said(watch(log))
    assert (event.incident, event.line) == (None, 401)
    assert not event.verdict.is_found
    assert event.text == PUMP.strip()


def test_the_files_of_a_job_are_one_case_and_new_ones_belong_to_it(
    tmp_path: Path, watch: Watch
) -> None:
    watcher = watch(tmp_path)
    for rank in range(4):
        append(tmp_path / f"rank{rank}.log", steps(100))
    assert said(watcher) == []
    (tmp_path / "node2").mkdir()
    for rank in range(4, 8):
        append(tmp_path / "node2" / f"rank{rank}.log", f"{steps(100)}{SHM}")
    (event,) = said(watcher)
    assert event.incident == SHM_RECORD
    assert event.file is not None
    assert event.file.startswith("node2/rank")


def test_each_file_can_be_a_case_of_its_own(tmp_path: Path, watch: Watch) -> None:
    for name in ("a.log", "b.log"):
        append(tmp_path / name, SHM)
    events = said(watch(tmp_path, unit=Unit.FILE))
    assert [event.path for event in events] == [str(tmp_path / "a.log"), str(tmp_path / "b.log")]


def test_a_rotated_part_is_not_read_again(tmp_path: Path, log: Path, watch: Watch) -> None:
    watcher = watch(tmp_path)
    append(log, f"{steps(50)}{PUMP}")
    assert len(said(watcher)) == 1
    read = watcher.bytes_read
    log.rename(tmp_path / "train.log.1")
    append(log, steps(1))
    said(watcher)
    assert said(watcher) == []
    assert watcher.bytes_read == read + len(steps(1))


@pytest.mark.parametrize("rotated", ["renamed", "copied and truncated"])
def test_trouble_at_the_end_of_a_part_is_that_of_the_part(
    tmp_path: Path, log: Path, watch: Watch, rotated: str
) -> None:
    watcher = watch(tmp_path)
    append(log, steps(700))
    assert said(watcher) == []
    append(log, SHM)
    if rotated == "renamed":
        log.rename(tmp_path / "train.log.1")
    else:
        shutil.copyfile(log, tmp_path / "train.log.1")
        os.truncate(log, 0)
    append(log, steps(600))
    (event,) = said(watcher)
    assert (event.incident, event.line) == (SHM_RECORD, 701)
    assert "shared memory" in event.text


def test_a_good_end_is_said_once_and_only_where_nothing_was_wrong(
    tmp_path: Path, watch: Watch
) -> None:
    good, bad = tmp_path / "good.log", tmp_path / "bad.log"
    append(good, steps(400) + DONE)
    append(bad, steps(400) + "ERROR: something odd\n" + steps(400) + DONE)
    watcher = watch(good, bad)
    (event,) = said(watcher)
    assert (event.path, event.verdict) == (str(good), Verdict.HEALTHY)
    assert said(watcher) == []


def test_a_log_that_just_stops_is_not_said_to_be_well(log: Path, watch: Watch) -> None:
    append(log, steps(400))
    assert said(watch(log)) == []


def test_what_is_missing_gone_or_no_log_is_named_once(
    tmp_path: Path, watch: Watch, notices: list[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    later = tmp_path / "later"
    watcher = watch(later, tmp_path / "pipe")
    for _ in range(3):
        said(watcher)
    assert len(notices) == 2
    assert "kb waits for it" in notices[0]
    assert "not a regular file" in notices[1]
    later.mkdir()
    append(later / "rank0.log", SHM)
    assert [event.incident for event in said(watcher)] == [SHM_RECORD]


def test_a_directory_that_vanishes_and_comes_back_is_followed_on(
    tmp_path: Path, watch: Watch, notices: list[str]
) -> None:
    job = tmp_path / "job"
    job.mkdir()
    append(job / "rank0.log", SHM)
    watcher = watch(job)
    assert len(said(watcher)) == 1
    (job / "rank0.log").unlink()
    job.rmdir()
    for _ in range(20):
        assert said(watcher) == []
    assert len(notices) == 1
    job.mkdir()
    append(job / "rank0.log", XID)
    assert [event.incident for event in said(watcher)] == [XID_RECORD]


@pytest.mark.slow
def test_a_thousand_ranks_are_followed_and_their_first_failure_is_said(
    tmp_path: Path, watch: Watch
) -> None:
    for rank in range(1_000):
        append(tmp_path / f"rank{rank}.log", steps(5))
    watcher = watch(tmp_path)
    assert said(watcher) == []
    append(tmp_path / "rank617.log", SHM)
    (event,) = said(watcher)
    assert (event.incident, event.rank) == (SHM_RECORD, 617)


def test_secrets_of_a_line_are_masked(log: Path, watch: Watch) -> None:
    append(log, "RuntimeError: pump refused token=hf_abcdefghijklmnopqrstuvwxyzABCDEFGH\n")
    (event,) = said(watch(log))
    assert "hf_abc" not in (event.text or "")
