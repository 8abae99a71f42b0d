"""What comes from outside has bounds where it enters: numbers, times, structure, depth, lines."""

from __future__ import annotations

import io
import os
import pickle
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from index.documents import Pattern
from index.errors import PatternError
from index.signatures import Scanner, _repeated, check
from kb.classify import MainLine, Result, summarize
from kb.classify.inputs import Unit, find_units
from kb.conversation.answers import is_answer
from kb.corpus.directories import IncidentDirectories, markdown_files
from kb.diagnosis.scan import scan_log
from kb.errors import CorpusError, EvaluationError, SettingsError
from kb.evaluate.cases import read_cases
from kb.evaluate.expressions import contains
from kb.evidence.facts import find_facts
from kb.job import analyse
from kb.job.plain_pickle import load_plain
from kb.log import Log, Source
from kb.log.clean import clean_block
from kb.log.layout import number_siblings, origin_of
from kb.log.prefixes import split_prefix
from kb.log.speakers import learn_way
from kb.log.timestamps import Calendar, read_stamp
from kb.numbers import MAX_INT
from kb.questions import versions
from kb.rules import read_rows
from kb.rules.rows import ExitBlock, ExitReport, Failure, Layout, Marker, Prefix, Speaker
from kb.settings import load_settings
from kb.soft_breaks import join_soft_breaks
from kb.verdict import Verdict
from kb.views.page import to_html
from tests.kb.test_job import dump, entry, job_of
from tests.scanners import markers

ROWS = [
    *read_rows("prefixes", "prefix", Prefix),
    *read_rows("speakers", "speaker", Speaker),
    *read_rows("layouts", "rank", Layout),
    *read_rows("layouts", "attempt", Layout),
    *read_rows("exits", "exit", ExitReport),
    *read_rows("exits", "block", ExitBlock),
    *read_rows("failures", "failure", Failure),
    *read_rows("markers", "marker", Marker),
]
STATED = (
    "world_size=8 exit code 7, Timeout(ms)=600000, SeqNum=3, NumelIn=1, NumelOut=1, Xid 79",
    "errno 5, CUDA error 802",
    "mpirun -np 8 python train.py; nnodes=2, host gpu-1 and gpu-2",
    "[rank1]: task 3 of 8 (pid=77) on host gpu-1",
    "Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=1, OpType=BROADCAST",
    "rank 1 has inconsistent 3 params",
    "  rank      : 1 (local_rank: 1)\n  exitcode  : 7 (pid: 77)\n  traceback : x",
    "step 3 fwd 12 ms time 12 s",
)
BEYOND = ("9" * 40, "9" * 4999)
"""More than 64 bits, and more than Python reads."""


def job_text(example: str, digits: str) -> str:
    return re.sub(
        r"\d+", digits, f"[rank0]: {example}\n[rank1]: RuntimeError: {example}\n{example}\n"
    )


def held(value: object) -> bool:
    """Whether it can be stored and sent: no number in it is too large."""
    msgspec.msgpack.encode(value)
    return all(abs(number) <= MAX_INT + 1 for number in numbers_in(msgspec.to_builtins(value)))


def numbers_in(value: Any) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict):
        yield from (
            number for pair in value.items() for part in pair for number in numbers_in(part)
        )
    elif isinstance(value, (list, tuple)):
        yield from (number for part in value for number in numbers_in(part))


def check_numbers(text: str) -> None:
    lines = text.splitlines()
    assert held(find_facts(lines))
    assert all(held(split_prefix(line)) for line in lines)
    learn_way(lines * 5)
    reading = scan_log(Log.from_text(text * 5), Scanner([]), markers())
    analysis = analyse(reading.files)
    assert analysis is None or held(analysis.job)


def test_of_ranks_that_all_complain_a_bounded_number_of_lines_is_looked_at() -> None:
    text = "".join(f"[rank{rank}]: RuntimeError: boom\n" for rank in range(29_000))

    (lines,) = scan_log(Log.from_text(text), Scanner([]), markers()).files.values()

    assert 15_000 < len(lines) < 22_000
    assert lines[-1].text == "[rank28999]: RuntimeError: boom"


@pytest.mark.slow
def test_numbers_of_more_than_64_bits_are_left() -> None:
    for example in (*STATED, *(example for row in ROWS for example in row.examples)):
        check_numbers(job_text(example, BEYOND[0]))


@pytest.mark.parametrize("example", STATED)
def test_numbers_that_python_refuses_are_left(example: str) -> None:
    check_numbers(job_text(example, BEYOND[1]))


@pytest.mark.parametrize("digits", BEYOND[:1])
def test_numbers_of_any_size_in_names_of_files(digits: str) -> None:
    names = [re.sub(r"\d+", digits, name) for row in ROWS for name in row.examples]
    assert all(held(origin_of(name)) for name in names)
    assert number_siblings([f"a{digits}.log", f"a{digits}1.log"]) == {}


@pytest.mark.parametrize("digits", BEYOND[:2])
def test_versions_of_any_size_are_compared(digits: str) -> None:
    assert versions._is_in(f"2.{digits}", "<2.3") in (False, None)
    assert versions._is_in("2.3", f"<2.{digits}") in (True, None)


@pytest.mark.parametrize("digits", BEYOND)
def test_numbers_of_any_size_that_a_person_types(digits: str) -> None:
    assert is_answer(digits)
    assert join_soft_breaks(f"see\n{digits}. of it") == f"see {digits}. of it"


# --- lines


def test_digits_before_a_carriage_return_take_no_time() -> None:
    program = (
        "from kb.log.clean import clean_block; digits = b'1' * 400_000;"
        " print(len(clean_block(digits + b'\\rx\\n1/' + digits + b'\\rx\\n')))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=60, check=True
    )
    assert int(run.stdout) > 800_000


@pytest.mark.parametrize(
    "bar", [b"99%", b"99.5 %", b"3/10 [00:01", b"12.3it/s", b"1.2s/it", b"########"]
)
def test_a_bar_that_was_redrawn_is_gone(bar: bytes) -> None:
    assert clean_block(b"Loading " + bar + b"\rdone\n") == b"done\n"
    assert clean_block(b"Loading 10 of 3/4\rdone\n") == b"Loading 10 of 3/4 done\n"


@pytest.mark.parametrize(
    ("escaped", "plain"),
    [
        (rb"\u0045\u0072\u0072or", b"Error"),
        (rb"\u9519\u8bef", "错误".encode()),
        (rb'\u0022, "x": "C:\\u005c\u001b\u000a', rb'\u0022, "x": "C:\\u005c\u001b\u000a'),
    ],
)
def test_letters_that_json_escapes_are_read(escaped: bytes, plain: bytes) -> None:
    assert clean_block(escaped) == plain


# --- recorded collectives


def laugh(depth: int = 9) -> Any:
    """A kilobyte in a pickle, and gigabytes as a text."""
    value: Any = "lol"
    for _ in range(depth):
        value = [value] * 10
    return value


def dumps_of(folder: Path, *dumps: Any) -> Path:
    folder.mkdir(exist_ok=True)
    for rank, one in enumerate(dumps):
        data = one if isinstance(one, bytes) else pickle.dumps(one)
        (folder / f"nccl_trace_rank_{rank}").write_bytes(data)
    return folder


def with_ranks(ranks: Any) -> dict[str, Any]:
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": ranks}}
    return dump([entry(1)]) | {"pg_config": config}


def same_hash(count: int) -> bytes:
    """A pickle of a dictionary whose keys Python cannot tell apart by their hash."""
    keys = (number * sys.hash_info.modulus for number in range(1, count))
    longs = (key.to_bytes(10, "little") for key in keys)
    return b"\x80\x02}(" + b"".join(b"\x8a\x0a" + long + b"N" for long in longs) + b"u."


FRAME = {"filename": "/opt/train.py", "line": 88, "name": "step"}
SIZES, NAME = [[1] * 1000] * 1000, "x" * (1 << 20)
ODD_DUMPS: dict[str, Callable[[], Any]] = {
    "ranks that grow": lambda: with_ranks(laugh()),
    "file name that grows": lambda: dump([entry(1) | {"frames": [FRAME | {"filename": laugh()}]}]),
    "sizes that grow": lambda: dump([entry(n) | {"input_sizes": SIZES} for n in range(1000)]),
    "shared names": lambda: dump([entry(n) | {"profiling_name": NAME} for n in range(1000)]),
    "a circle": lambda: b"(lp0\ng0\na.",
    "deep tuple": lambda: b"\x80\x04}\x8c\x07entries)" + b"\x85" * 200_000 + b"s.",
    "deep tuple as a key": lambda: b"\x80\x04})" + b"\x85" * 200_000 + b"Ns.",
    "deep list": lambda: b"\x80\x04}\x8c\x07entries" + b"]" * 200_000 + b"a" * 199_999 + b"s.",
    "keys of one hash": lambda: same_hash(100_000),
    "line of 5,000 digits": lambda: dump([entry(1) | {"frames": [FRAME | {"line": 10**5000}]}]),
    "number of 5,000 digits": lambda: dump([entry(10**5000)]),
    "rank of 5,000 digits": lambda: with_ranks(f"[{'9' * 5000}]"),
    "deep JSON": lambda: b'{"entries": ' + b"[" * 100_000,
    "JSON of many lists": lambda: b'{"entries": [' + b"[]," * 12_000_000 + b"[]]}",
    "many lists": lambda: b"(" + b"]" * 12_000_000 + b"l.",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD_DUMPS)
def test_a_dump_that_grows_is_read_or_left(tmp_path: Path, name: str) -> None:
    program = (
        "import resource, sys, pathlib; resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30));"
        " from tests.kb.test_job import job_of; print(len(repr(job_of(pathlib.Path(sys.argv[1])))))"
    )
    good = dump([entry(1), entry(2, state="scheduled")], ranks=3)
    odd = ODD_DUMPS[name]()
    run = subprocess.run(
        [sys.executable, "-c", program, dumps_of(tmp_path / "job", good, odd, good)],
        capture_output=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr[-500:]
    assert int(run.stdout) < 10_000


DAMAGED = {
    "cut off": lambda good: pickle.dumps(good)[:-40],
    "empty": lambda _good: b"",
    "refused": lambda good: pickle.dumps(good | {"keys": {(1, 2): 3}}),
    "cut off in JSON": lambda good: msgspec.json.encode(good)[:-40],
    "zeros": lambda _good: bytes(9000),
}


@pytest.mark.parametrize("how", DAMAGED)
def test_a_rank_with_a_damaged_dump_is_not_blamed_for_having_left_none(
    tmp_path: Path, how: str
) -> None:
    good = dump([entry(1), entry(2, state="scheduled")], ranks=4)
    folder = dumps_of(tmp_path / "job", good, good, DAMAGED[how](good))
    assert [culprit.rank for culprit in job_of(folder).culprits] == [3]
    log = Log.from_paths([folder])
    assert scan_log(log, Scanner([]), markers()).damaged_dumps == {2}
    (notice,) = log.notices
    assert notice.startswith("nccl_trace_rank_2 cannot be read as a flight-recorder dump")


def test_where_only_a_damaged_dump_is_missing_nobody_is_blamed(tmp_path: Path) -> None:
    good = dump([entry(1), entry(2, state="scheduled")], ranks=3)
    folder = dumps_of(tmp_path / "job", good, good, b"\x80\x04 no more")
    assert not job_of(folder).culprits


def test_a_log_with_the_name_of_a_dump_is_a_log(tmp_path: Path) -> None:
    (tmp_path / "trace_0").write_text("step 1\n(rank 0) RuntimeError: boom\n")
    (tmp_path / "trace_1.json").write_text('{"message": "RuntimeError: boom"}\n')
    log = Log.from_paths([tmp_path])
    evidence = scan_log(log, Scanner([]), markers()).collector.evidence()
    assert {line.file for line in evidence.lines} == {"trace_0", "trace_1.json"}


def test_a_large_file_with_the_name_of_a_dump_is_told_by_its_beginning(tmp_path: Path) -> None:
    with (tmp_path / "nccl_trace_rank_0").open("wb") as file:
        file.truncate(1 << 40)
    log = Log.from_paths([tmp_path])
    assert scan_log(log, Scanner([]), markers()).damaged_dumps == {0}
    assert log.notices == [
        "nccl_trace_rank_0 cannot be read as a flight-recorder dump; it is left out"
    ]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_of_all_protocols_are_read(protocol: int) -> None:
    value = dump([entry(1), entry(2**40)]) | {
        "a": [None, True, 1.5, -1, (), {}, (1,), (1, 2, 3, 4)]
    }
    assert load_plain(pickle.dumps(value, protocol), 10_000) == value


def test_texts_of_a_dump_can_be_shown(tmp_path: Path) -> None:
    """A lone surrogate cannot be written anywhere, and a terminal would obey an escape."""
    frames = [{"filename": "/opt/\udc00tr\x1b[2Jain.py", "line": 88, "name": "st\udfffep"}]
    odd = entry(2, "nccl:\ud800broadcast", "scheduled") | {"frames": frames}
    usual = dump([entry(1), entry(2, state="scheduled")])
    folder = dumps_of(tmp_path / "job", usual, usual, dump([entry(1), odd]))
    (culprit,) = job_of(folder).culprits
    assert culprit.rank == 2
    assert culprit.text is not None
    assert culprit.text.encode().isascii() is False
    assert "nccl:\ufffdbroadcast" in culprit.text
    assert "in st\ufffdep" in culprit.text
    assert "\x1b" not in culprit.text


class Refused(AbstractContextManager[io.BytesIO]):
    def __enter__(self) -> io.BytesIO:
        raise PermissionError(13, "Permission denied")

    def __exit__(self, *_: object) -> None: ...


def test_one_dump_that_cannot_be_read_is_a_notice(tmp_path: Path) -> None:
    good = dump([entry(1), entry(2, state="scheduled")], ranks=3)
    log = Log.from_paths([dumps_of(tmp_path / "job", good, good)])
    refused = Source("nccl_trace_rank_2", Refused, one_of_many=True)
    log = Log([*log.sources, refused])
    reading = scan_log(log, Scanner([]), markers())
    assert len(reading.dumps) == 2
    assert log.notices == ["cannot read nccl_trace_rank_2: Permission denied"]


# --- times


NO_TIMES = (
    "0001-01-01T00:00:00Z ERROR x: RuntimeError: odd",
    "9999-12-31 23:59:59 never",
    "9999-12-31 23:59:59-23:00 never",
    "0000-00-00 00:00:00 x",
)


@pytest.mark.parametrize("line", NO_TIMES[:3])
def test_a_date_that_means_no_time_is_none(line: str) -> None:
    assert read_stamp(line) is None


def test_the_time_beside_a_date_that_means_no_time_is_read() -> None:
    stamp = read_stamp("W1121 03:04:05.250000 23 x.go:8] last seen 0001-01-01T00:00:00Z")
    dated = read_stamp("2026-11-21 00:00:00 start")
    assert stamp is not None
    assert dated is not None
    assert Calendar([dated, stamp]).seconds(stamp) == pytest.approx(1795230245.25)


@pytest.fixture(params=["EST5", "UTC", "JST-9"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("line", [*NO_TIMES, "2026-11-20 03:00:01 boom"])
@pytest.mark.usefixtures("zone")
def test_a_page_is_written_whatever_times_are_in_it(tmp_path: Path, line: str) -> None:
    results = []
    for number, seconds in enumerate((-(10**10), 0, 2**33, 253402300799)):
        path = tmp_path / f"{number}.log"
        path.touch()
        os.utime(path, (seconds, seconds))
        results.append(Result(str(path), Verdict.UNKNOWN, None, None, MainLine(None, 1, "boom")))
    results.append(Result("x", Verdict.UNKNOWN, None, None, MainLine(None, 1, line)))
    assert b"<html" in to_html(summarize(results, []), {})


# --- depth


LEVELS = 1_300


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """A directory with many levels, and a log and a record at the top and at the bottom."""
    top = tmp_path / "deep"
    top.mkdir()
    here = os.open(top, os.O_RDONLY)
    try:
        for level in range(LEVELS + 1):
            if level in (0, LEVELS):
                for name in ("x.log", "some-record.md"):
                    os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=here))
            os.mkdir("a", dir_fd=here)
            below = os.open("a", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        yield top
    finally:
        os.close(here)
        subprocess.run(["rm", "-rf", top], check=True)  # deeper than Python removes


def test_directories_of_any_depth_are_read(deep: Path) -> None:
    assert len(Log.from_paths([deep]).sources) == 4
    assert len(find_units([str(deep)], Unit.FILE)) == 2  # the others are Markdown
    assert len(list(markdown_files(deep))) == 2


def test_a_pattern_into_any_depth_finds_the_files(deep: Path) -> None:
    assert len(find_units([f"{deep}/**/*.log"], Unit.FILE)) == 2


# --- settings


@pytest.mark.parametrize(
    "text",
    ["history = " + "9" * 5000, "keys = " + "[" * 5000, "a" + ".a" * 8000 + " = 1"],
    ids=["number", "depth", "tables"],
)
def test_a_configuration_of_any_size_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (tmp_path / "config.toml").write_text(text)
    monkeypatch.setenv("KB_CONFIG", str(tmp_path / "config.toml"))
    with pytest.raises(SettingsError, match="invalid configuration"):
        load_settings()


def test_a_configuration_that_is_too_large_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.toml").write_text("a" + ".a" * 50_000 + " = 1")
    monkeypatch.setenv("KB_CONFIG", str(tmp_path / "config.toml"))
    with pytest.raises(SettingsError, match="it has more than 16,384 bytes"):
        load_settings()


# --- expressions


WIDE = {
    "a.{0,900}b": 899,
    "(a.{0,9}b){0,40}": 437,
    "((a{0,50}){0,50}){0,50}": 124_999,
    "a{3,}b{2}": 3,
    r"[}{0,9]{3}": 2,
    r"\{900}\x{41}[[:alpha:]{}]": 0,
}


@pytest.mark.parametrize("regex", WIDE)
def test_repeats_are_counted_as_written_out(regex: str) -> None:
    assert _repeated(regex) == WIDE[regex]


def test_a_signature_that_takes_long_to_compile_is_refused() -> None:
    with pytest.raises(PatternError, match="at most"):
        check(Pattern(r"a.{0,900}b.{0,900}c", regex=True))
    check(Pattern(r"a.{0,120}b.{0,120}c", regex=True))
    check(Pattern(r"a.{0,900}b.{0,900}c"))  # as text


def test_an_expression_of_a_labelled_report_takes_linear_time(tmp_path: Path) -> None:
    assert contains("(?i)(X+X+)+Y", "x" * 4000 + "y")
    assert not contains("(x+x+)+y", "x" * 4000)
    assert contains(r"(?<!not )upgrade(?! later)", "please upgrade")
    line = '{"text": "t", "relevant": [], "kind": "log", "fix_must_match": "("}'
    (tmp_path / "reports.jsonl").write_text(line)
    with pytest.raises(EvaluationError, match=r"reports.jsonl:1 .*does not compile"):
        read_cases(tmp_path / "reports.jsonl")


def test_the_home_of_nobody_is_one_sentence() -> None:
    with pytest.raises(CorpusError, match="~nosuchuser/x is not a directory"):
        IncidentDirectories(["~nosuchuser/x"])
