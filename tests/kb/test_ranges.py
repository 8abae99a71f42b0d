"""A file in ranges, scanned apart, gives what it gives in one go."""

from __future__ import annotations

import gzip
import os
import pickle
from pathlib import Path

import msgspec
import pytest

import kb.log.reader
from kb.classify.cut import CUT_ABOVE_BYTES, files_to_cut
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.diagnosis.scan import RangeScan, ScannedLog, scan_log, scan_range
from kb.errors import KbError, LogError
from kb.log import Block, Log
from kb.log.ranges import can_be_cut, cut
from kb.service.wire import to_answer

RECORDED = sorted(
    path
    for folder in ("benchmarks/jobs", "benchmarks/samples")
    for path in Path(folder).rglob("*")
    if path.is_file() and path.suffix not in (".md", ".json", ".toml", ".yaml")
)
CALM = "2026-11-21 03:00:00 INFO [rank{n}] step {n} loss 2.5 lr 0.1\n"
STACK = """[rank3]: Traceback (most recent call last):
[rank3]:   File "/srv/train.py", line 88, in step
[rank3]:     loss.backward()
[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB
"""
RETURNS = "".join(
    f"\r{n}%|{'#' * (n // 4)}| {n}/100 [00:{n:02d}<00:01, 2.1it/s]" for n in range(100)
)
BORDERS = {
    "a traceback": "".join(CALM.format(n=n % 8) + (STACK if n % 9 == 0 else "") for n in range(99)),
    "one line in pieces": "x" * 5_500 + " RuntimeError: jammed\nstep 1\n" + "error " * 900,
    "progress bars": f"step 1\n{RETURNS}\nWARNING: slow\n{RETURNS}{RETURNS}\nRuntimeError: torn\n",
    "characters of several bytes": "训练失败：内存不足 ü \x1b[31merror\x1b[0m é\n" * 90,
    "ends of Windows": STACK.replace("\n", "\r\n") * 30,
    "nothing but ends": "\n" * 5_000,
    "no end": CALM.format(n=1) * 99 + "killed by signal 9",
    "repeats": "".join(f"WARNING retry {n} of 999\n" for n in range(999)) + STACK,
}


def in_ranges(
    path: Path, knowledge: KnowledgeBase, range_bytes: int
) -> tuple[ScannedLog, list[RangeScan]]:
    """What is read of a file whose ranges other processes have scanned."""
    signatures, markers = knowledge.signatures, knowledge.markers
    scans = [scan_range(part, signatures, markers) for part in cut(path, range_bytes)]
    sent = [pickle.loads(pickle.dumps(scan)) for scan in scans]
    outputs = knowledge.guides.patterns
    return scan_log(Log.from_paths([path]), signatures, markers, outputs, sent), sent


def content(scanned: ScannedLog) -> tuple[object, ...]:
    return scanned.collector.evidence(), scanned.files, scanned.windows, scanned.losses


def in_one_go(path: Path, knowledge: KnowledgeBase) -> ScannedLog:
    outputs = knowledge.guides.patterns
    return scan_log(Log.from_paths([path]), knowledge.signatures, knowledge.markers, outputs)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes of a block, so that a short log has many."""
    monkeypatch.setattr(kb.log.reader, "BLOCK_BYTES", 1_000)
    return 1_000


@pytest.mark.parametrize("text", BORDERS.values(), ids=BORDERS)
@pytest.mark.parametrize("blocks", [1, 3, 4])
def test_nothing_is_lost_at_a_border(
    knowledge: KnowledgeBase, tmp_path: Path, small_blocks: int, text: str, blocks: int
) -> None:
    path = tmp_path / "job.log"
    path.write_bytes(text.encode() * 5)
    scanned, scans = in_ranges(path, knowledge, blocks * small_blocks)
    assert len(scans) > 1
    assert content(scanned) == content(in_one_go(path, knowledge))


def test_lines_are_numbered_as_in_the_file(
    knowledge: KnowledgeBase, tmp_path: Path, small_blocks: int
) -> None:
    path = tmp_path / "job.log"
    calm = "".join(CALM.format(n=n % 8) for n in range(700))
    path.write_text(f"{calm}{STACK}{calm}")
    _scanned, scans = in_ranges(path, knowledge, small_blocks)
    found = diagnose(Log.from_paths([path]), knowledge, ranges=scans)
    assert found.job is not None
    assert (found.job.culprits[0].rank, found.job.culprits[0].line) == (3, 704)
    whole = to_answer(diagnose(Log.from_paths([path]), knowledge))
    answer = msgspec.structs.replace(to_answer(found), elapsed_ms=whole.elapsed_ms)
    assert answer == whole


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [1, 7])
def test_recorded_logs_are_read_as_in_one_go(
    knowledge: KnowledgeBase, small_blocks: int, blocks: int
) -> None:
    cuttable = [path for path in RECORDED if path.stat().st_size and can_be_cut(path)]
    assert len(cuttable) > 300
    for path in cuttable:
        scanned, _scans = in_ranges(path, knowledge, blocks * small_blocks)
        assert content(scanned) == content(in_one_go(path, knowledge)), path


@pytest.mark.slow
def test_a_long_log_is_read_as_in_one_go(knowledge: KnowledgeBase, tmp_path: Path) -> None:
    path = tmp_path / "all.log"
    texts = [file.read_bytes() for file in RECORDED if file.stat().st_size and can_be_cut(file)]
    path.write_bytes(b"\n".join(texts) * 2)
    scanned, scans = in_ranges(path, knowledge, 1 << 20)
    assert len(scans) > 2
    assert content(scanned) == content(in_one_go(path, knowledge))


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(STACK.encode() * 99),
        STACK.encode("utf-16"),
        STACK.encode("utf-8-sig"),
        STACK.replace("\n", "\r").encode(),
        b'{"log": "step 1\\n", "stream": "stdout", "time": "2026-11-21T03:00:00Z"}\n' * 99,
        bytes(range(32)) * 99,
    ],
    ids=["gzip", "UTF-16", "byte order mark", "carriage returns", "export", "binary"],
)
def test_what_has_other_lines_than_the_file_is_not_cut(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "job.log"
    path.write_bytes(data)
    assert not can_be_cut(path)


def test_a_file_that_shrinks_is_one_sentence(
    knowledge: KnowledgeBase, tmp_path: Path, small_blocks: int
) -> None:
    path = tmp_path / "job.log"
    path.write_text(STACK * 99)
    parts = list(cut(path, small_blocks))
    signatures, markers = knowledge.signatures, knowledge.markers
    scans = [scan_range(part, signatures, markers) for part in parts]
    path.write_text(STACK * 9)
    with pytest.raises(LogError, match="changed while it was read"):
        scan_range(parts[-1], signatures, markers)
    with pytest.raises(LogError, match="changed while it was read"):
        scan_log(Log.from_paths([path]), signatures, markers, ranges=scans)


def test_ranges_of_other_incidents_are_refused(knowledge: KnowledgeBase, tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(STACK)
    signatures, markers = knowledge.signatures, knowledge.markers
    scans = [scan_range(part, markers, markers) for part in cut(path)]
    with pytest.raises(KbError, match="incidents changed"):
        scan_log(Log.from_paths([path]), signatures, markers, ranges=scans)


def test_blocks_are_those_of_the_whole_file(tmp_path: Path, small_blocks: int) -> None:
    for text in BORDERS.values():
        path = tmp_path / "job.log"
        path.write_bytes(text.encode() * 2)
        whole: list[Block] = [*Log.from_paths([path]).blocks()]
        for blocks in (1, 2, 5):
            parts = [part.blocks() for part in cut(path, blocks * small_blocks)]
            found = [pair for part in parts for pair in part]
            assert [block.data for block, _extent in found] == [block.data for block in whole]
            assert [extent.read() for _block, extent in found] == [block.data for block in whole]


def test_files_larger_than_the_share_of_a_worker_are_cut(tmp_path: Path) -> None:
    def sparse(name: str, size: int) -> str:
        path = tmp_path / name
        path.write_text(CALM.format(n=1) * 100)
        os.truncate(path, size)
        return str(path)

    large, alike = (sparse(name, 3 * CUT_ABOVE_BYTES) for name in ("large.log", "alike.log"))
    small, gone = sparse("small.log", CUT_ABOVE_BYTES), str(tmp_path / "gone.log")
    assert files_to_cut([small, large, gone, str(tmp_path)], 2) == [large]
    assert files_to_cut([large, alike], 2) == []
    assert files_to_cut([large, alike], 3) == [large, alike]
    assert files_to_cut([small], 2) == files_to_cut([large], 1) == []
