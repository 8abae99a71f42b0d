"""Any bytes become lines with the right numbers, and nothing in them reaches the terminal."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from pathlib import Path

import pytest
import zstandard

from kb.errors import LogError
from kb.log import Log
from kb.log.clean import clean_block, strip_controls
from kb.log.mask import mask
from kb.log.prefixes import split_prefix


def text_of(log: Log) -> str:
    return b"".join(block.data for block in log.blocks()).decode("utf-8", "replace")


@pytest.mark.parametrize(
    "data",
    [
        "line one\nzweite Zeile ä\n".encode(),
        "line one\nzweite Zeile ä\n".encode("utf-16"),
        "line one\nzweite Zeile ä\n".encode("utf-16-le"),
        "line one\nzweite Zeile ä\n".encode("utf-8-sig"),
        gzip.compress("line one\nzweite Zeile ä\n".encode()),
        zstandard.compress("line one\nzweite Zeile ä\n".encode()),
        bz2.compress("line one\nzweite Zeile ä\n".encode()),
        bz2.compress(b"line one\n") + bz2.compress("zweite Zeile ä\n".encode()),
        lzma.compress("line one\nzweite Zeile ä\n".encode()),
        lzma.compress(b"line one\n") + lzma.compress("zweite Zeile ä\n".encode()),
        b"\x5e\x2a\x4d\x18\x04\0\0\0skip"
        + zstandard.compress("line one\nzweite Zeile ä\n".encode()),
        b"line one\r\nzweite Zeile \xc3\xa4\r\n",
        b"line one\rzweite Zeile \xc3\xa4\r",
        b"\x1b[31mline\x1b[0m one\n\x1b]0;owned\x07zweite Zeile \xc3\xa4\n",
        b"li\0ne one\nzweite Zeile \xc3\xa4\n",
        b"l\bli\bin\bn\bne\be _\bo_\bn_\be\nzweite Zeile \xc3\xa4\b\xc3\xa4\n",
        "ｌｉｎｅ one\nｚｗｅｉｔｅ Ｚｅｉｌｅ ä\n".encode(),
    ],
    ids=[
        "utf8",
        "utf16",
        "utf16le",
        "bom",
        "gzip",
        "zstd",
        "bzip2",
        "bzip2-streams",
        "xz",
        "xz-streams",
        "zstd-skip",
        "crlf",
        "cr",
        "ansi",
        "nul",
        "overstruck",
        "full-width",
    ],
)
def test_encodings_and_compressions_read_the_same(data: bytes) -> None:
    assert text_of(Log.from_bytes(data)) == "line one\nzweite Zeile ä\n"


@pytest.mark.parametrize(
    ("data", "form"),
    [
        (gzip.compress(gzip.compress(b"line one\n")), "gzip"),
        (gzip.compress(lzma.compress(b"line one\n")), "xz"),
        (b"7z\xbc\xaf\x27\x1c" + bytes(range(200)), "7z"),
        (b"PK\x03\x04" + bytes(range(200)), "zip"),
        (b"\x04\x22\x4d\x18" + bytes(range(200)), "lz4"),
    ],
    ids=["gzip in gzip", "xz in gzip", "7z", "zip", "lz4"],
)
def test_what_is_left_packed_is_named(data: bytes, form: str) -> None:
    log = Log.from_bytes(data, "x.log")
    text_of(log)
    assert f"x.log is packed as {form}, and is not read; unpack it first" in log.notices


def test_what_another_sign_strikes_over_is_kept() -> None:
    """It may be a message; and the punctuation of Chinese is no letter."""
    assert text_of(Log.from_bytes(b"Killed\b\b\b\b\b\bok    \n")).startswith("Killed")
    assert text_of(Log.from_bytes("错误：（１）".encode())) == "错误：（1）"


def test_invalid_utf8_is_kept_readable() -> None:
    assert "RuntimeError" in text_of(Log.from_bytes(b"caf\xe9 \xff\xfe RuntimeError\n"))


def test_truncated_gzip_gives_what_is_there_and_says_so() -> None:
    whole = gzip.compress(b"".join(b"step %d loss 2.5\n" % n for n in range(20_000)))
    log = Log.from_bytes(whole[: len(whole) // 2], "half.gz")
    assert text_of(log).startswith("step 0 loss")
    assert log.notices
    assert "half.gz is damaged" in log.notices[0]


def test_what_stands_before_a_damaged_frame_is_read() -> None:
    good = zstandard.ZstdCompressor(write_checksum=True).compress(b"line one\n")
    log = Log.from_bytes(good + good[:-6] + b"\xff" * 6, "a.zst")
    assert text_of(log) == "line one\n"
    (loss,) = log.losses
    assert loss.startswith("a.zst is damaged; read up to there: ")


def _window(exponent: int, text: bytes) -> bytes:
    """A frame of zstd that asks for so much memory: one raw block (RFC 8878, 3.1.1)."""
    head = b"\x28\xb5\x2f\xfd\x00" + bytes([(exponent - 10) << 3])
    return head + ((len(text) << 3) | 1).to_bytes(3, "little") + text


def test_a_frame_with_a_long_window_is_read() -> None:
    assert text_of(Log.from_bytes(_window(28, b"line one\n"))) == "line one\n"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (_window(31, b"line one\n"), "it asks for more than 256 MB of memory; unpack it with"),
        (b"\x28\xb5\x2f\xfdbroken", "it is damaged: "),
        (gzip.compress(b"line one\n")[:10], "it is damaged: "),
        (bz2.compress(b"line one\n")[:20], "it is damaged: "),
        (bz2.compress(b"line one\n")[:15] + b"rubbish" * 9, "it is damaged: "),
        (lzma.compress(b"line one\n")[:10], "it is damaged: "),
        (lzma.compress(b"line one\n")[:15] + b"rubbish" * 9, "it is damaged: "),
    ],
    ids=["window", "zstd", "gzip", "bzip2", "bzip2 rubbish", "xz", "xz rubbish"],
)
def test_an_archive_of_which_nothing_can_be_read_is_an_error(data: bytes, why: str) -> None:
    with pytest.raises(LogError, match=f"^cannot read a.log: {why}"):
        text_of(Log.from_bytes(data, "a.log"))


@pytest.mark.parametrize("start", ["]0;", "P", "X", "^", "_"])
def test_of_a_string_without_an_end_only_the_start_is_lost(start: str) -> None:
    lines = f"step 1\n\x1b{start}abc RuntimeError: boom\nstep 2\n\x1b{start}title\x07step 3\n"
    text = text_of(Log.from_text(lines))
    assert "abc RuntimeError: boom\nstep 2\nstep 3\n" in text
    assert "\x1b" not in text


def test_binary_input_is_named() -> None:
    log = Log.from_bytes(bytes(range(32)) * 400, "core")
    list(log.blocks())
    assert log.notices == ["core looks binary; only its readable text was used"]


def test_line_numbers_run_on_over_blocks(tmp_path: Path) -> None:
    path = tmp_path / "big.log"
    path.write_bytes(b"".join(b"line %07d %s\n" % (n, b"x" * 50) for n in range(1, 60_001)))
    for block in Log.from_paths([path]).blocks():
        assert block.data.startswith(b"line %07d" % block.first_line)
        assert block.data.endswith(b"\n")


def test_a_line_of_gigabytes_does_not_need_gigabytes() -> None:
    class Endless:
        def __init__(self) -> None:
            self.left = 40

        def read(self, size: int = -1, /) -> bytes:
            self.left -= 1
            return b"a" * (1 << 20) if self.left > 0 else b""

    blocks = [len(block.data) for block in Log.from_stream(Endless()).blocks()]
    assert max(blocks) <= 2 << 20
    assert sum(blocks) >= 38 << 20


def test_progress_bars_collapse_and_messages_stay() -> None:
    bar = b"\r".join(
        b"Loading: %3d%%|####      | 5/10 [00:01<00:01]" % n for n in range(0, 101, 10)
    )
    assert clean_block(bar + b"\nnext\n").count(b"Loading") == 1
    assert b"CUDA error" in clean_block(b"CUDA error: x\rLoading: 10%|#   | 1/10\n")


def test_directory_is_read_in_order_with_relative_names(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "0").mkdir()
    (tmp_path / "1" / "stderr.log").write_text("b\n")
    (tmp_path / "0" / "stderr.log").write_text("a\n")
    blocks = list(Log.from_paths([tmp_path]).blocks())
    assert [block.source for block in blocks] == ["0/stderr.log", "1/stderr.log"]


def test_loop_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "log").write_text("x\n")
    (tmp_path / "a" / "back").symlink_to(tmp_path)
    assert len(Log.from_paths([tmp_path]).sources) == 1


@pytest.mark.parametrize("name", ["missing.log", "empty-directory"])
def test_unusable_path_is_one_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty-directory").mkdir()
    with pytest.raises(LogError, match=name):
        Log.from_paths([tmp_path / name])


def test_printable_text_cannot_drive_a_terminal() -> None:
    hostile = "a\x1b[2Jb\x07c\x9bd\u202ee\u200bf\tg\r"
    assert strip_controls(clean_block(hostile.encode()).decode()) == "abcdef" + "   " + "g"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("[Rank 3] SeqNum=57599 ran for 600012 ms", "[Rank 0] SeqNum=1 ran for 1800001 ms"),
        ("2026-11-21 03:00:00,123 lost 10.0.0.7:4791", "2025-01-02 13:14:15,999 lost 10.9.8.7:1"),
        ("at 0x7f875a061c62 in /a/b/lib/libtorch.so", "at 0x1 in /home/x/y/lib/libtorch.so"),
        ("Xid (PCI:0000:02:00): 79", "Xid (PCI:0000:c1:00): 79"),
    ],
)
def test_prints_of_one_line_have_one_mask(first: str, second: str) -> None:
    assert mask(first) == mask(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [("NVIDIA H100", "NVIDIA A100"), ("zero2", "zero3"), ("fp16", "bf16"), ("libcuda", "libcudnn")],
)
def test_names_with_digits_are_not_masked(first: str, second: str) -> None:
    assert mask(first) != mask(second)


@pytest.mark.parametrize(
    ("line", "rank", "host"),
    [
        ("[rank3]: boom", 3, None),
        ("[default5]:boom", 5, None),
        ("[1,7]<stderr>:boom", 7, None),
        ("12: boom", 12, None),
        ("gpu-3:118:1530 [6] NCCL WARN boom", 6, "gpu-3"),
        ("node-1: [rank2]: boom", 2, "node-1"),
        ("2026-11-21 03:00:00,123 [rank4]: boom", 4, None),
        ("[pod/train-0/main] [rank1]: boom", 1, "train-0"),
        ("(RayTrainWorker pid=77, ip=10.0.0.9) boom", None, "10.0.0.9"),
        ("[Tue Apr 15 16:50:03 2025] boom", None, None),
        ("[rank0]:[E1121 03:00:00.123456789 ProcessGroupNCCL.cpp:607] boom", 0, None),
    ],
)
def test_prefixes_are_taken_off(line: str, rank: int | None, host: str | None) -> None:
    spoken = split_prefix(line)
    assert spoken.text.endswith("boom")
    assert (spoken.rank, spoken.host) == (rank, host)


def test_plain_sentences_have_no_prefix() -> None:
    line = "Watchdog caught collective operation timeout: it happened 3: again"
    assert split_prefix(line).text == line


def test_one_unreadable_file_of_a_directory_is_a_notice(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("fine\n")
    gone = tmp_path / "b.log"
    gone.write_text("gone\n")
    log = Log.from_paths([tmp_path])
    gone.unlink()
    assert text_of(log) == "fine\n"
    assert log.notices == ["cannot read b.log: No such file or directory"]


def test_a_broken_link_in_a_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("fine\n")
    (tmp_path / "b.log").symlink_to("nowhere")
    (tmp_path / ".#a.log").symlink_to("me@host.1:2")  # the lock of an editor
    log = Log.from_paths([tmp_path])
    assert text_of(log) == "fine\n"
    assert log.losses == ["cannot read b.log: No such file or directory"]


SAID_AT = {"stream": "stderr", "time": "2026-11-21T03:10:07Z"}
ENTRY = {"logName": "projects/p/logs/stderr", "timestamp": "2026-11-21T03:10:07Z"}


@pytest.mark.parametrize(
    "line",
    [
        {"log": "step failed\n", "error": "CUDA error: boom", **SAID_AT},
        {"log": "", "exception": {"causes": [{"text": "CUDA error: boom"}]}, **SAID_AT},
        {"textPayload": "step", "jsonPayload": {"message": "CUDA error: boom"}, **ENTRY},
        {"jsonPayload": {"message": "step", "stack": "Traceback:\nCUDA error: boom"}, **ENTRY},
        {"message": "step", "podName": "train-0", "err": "CUDA error: boom"},
        [{"textPayload": "step", **ENTRY}, {"jsonPayload": {"why": "CUDA error: boom"}, **ENTRY}],
        {"events": [{"message": "step", "podName": "a"}, {"note": "CUDA error: boom"}]},
    ],
    ids=lambda line: str(line)[:40],
)
def test_an_error_in_another_field_of_an_export_is_read(line: object) -> None:
    (block,) = Log.from_text(json.dumps(line)).blocks()
    assert b"CUDA error: boom" in block.data


def test_fields_that_tell_of_the_machine_are_not_read() -> None:
    line = {"log": "boom\n", "attrs": {"note": "an error of old"}, **SAID_AT}
    (block,) = Log.from_text(json.dumps(line)).blocks()
    assert block.data == b"2026-11-21T03:10:07Z boom\n"
