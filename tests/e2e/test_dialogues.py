"""`kb eval --dialogues`: scripts of what a user says, and what each reply must contain."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run

SHM = "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Zk2 (size 9637888)"
FULL = "posix_fallocate failed : No space left on device"
DIALOGUES: tuple[Mapping[str, Any], ...] = (
    {
        "id": "shm",
        "lang": "en",
        "source": "made up",
        "cause": "a small /dev/shm",
        "cause_pattern": "(?i:/dev/shm is too small)",
        "opening_has_log": True,
        "turns": [
            {
                "user": f"{SHM}\n{FULL}",
                "must": ["/dev/shm", r"\d+ ?%"],
                "must_not": ["(?i)healthy"],
            },
            {"user": "why?", "must": ["line [12]"], "note": "cites"},
            {"user": "that fixed it, thanks", "must": ["(?i:solved)"]},
        ],
    },
    {
        "id": "卡住",
        "lang": "zh",
        "cause_pattern": "(?i)stops in the middle|without an error",
        "turns": [
            {"user": "训练跑着跑着就卡住了，没有任何报错", "must": ["检查|py-spy", "重启之?前"]},
            {"user": "为什么要跑这个检查？", "must": ["[一-龥]{4}"], "must_not": ["看不懂?懂"]},
        ],
    },
    {
        "id": "wrong",
        "lang": "en",
        "cause_pattern": "a cause that no record has",
        "turns": [
            {"user": SHM, "must": ["words that no reply has"]},
            {"user": "why?", "must": ["line 1"], "must_not": ["(?i:evidence)"]},
        ],
    },
)


def written(path: Path, dialogues: Sequence[Mapping[str, Any]] = DIALOGUES) -> Path:
    path.write_text("\n".join(map(json.dumps, dialogues)), encoding="utf-8")
    return path


def test_turns_dialogues_and_causes_are_counted(shipped_kb: Run, tmp_path: Path) -> None:
    run = shipped_kb("eval", "--dialogues", written(tmp_path / "set.jsonl"), "--json")
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    rates = {"dialogues": 3, "turns": 7, "good": 0.714, "openings": 0.667, "whole": 0.667}
    assert report["overall"] == rates, report["failed"]
    assert report["by_language"]["zh"]["whole"] == 1.0
    assert report["by_opening"]["opening with a log"]["dialogues"] == 1
    assert report["lead"] == {"dialogues": 3, "at_opening": 0.667, "at_end": 0.667, "turns": 1.0}
    opening, why = report["failed"]
    assert (opening["id"], opening["turn"], opening["user"]) == ("wrong", 1, SHM)
    assert opening["missing"] == ["words that no reply has"]
    assert "nccl-shm-too-small-container" in opening["said"]
    assert (why["turn"], why["missing"], why["forbidden"]) == (2, [], ["(?i:evidence)"])
    assert 0 < report["p50_ms"] <= report["p95_ms"]


def test_an_answer_of_the_user_brings_the_cause_up(shipped_kb: Run, tmp_path: Path) -> None:
    said = [{"user": "my job hangs"}, {"user": "ok"}, {"user": f"{SHM}\n{FULL}"}]
    dialogue = {"cause_pattern": "/dev/shm is too small", "turns": said}
    run = shipped_kb("eval", "--dialogues", written(tmp_path / "set.jsonl", [dialogue]), "--json")
    report = json.loads(run.stdout)
    assert report["lead"] == {"dialogues": 1, "at_opening": 0.0, "at_end": 1.0, "turns": 3.0}
    assert report["held"][0]["id"] == "set.jsonl:1"


def test_chosen_checks_stand_beside_those_in_fixed_order(shipped_kb: Run, tmp_path: Path) -> None:
    df = "$ df -h /dev/shm\nFilesystem Size Used Avail Use% Mounted on\nshm 64M 64M 0 100% /dev/shm"
    dialogue = {
        "turns": [{"user": "RuntimeError: NCCL error: unhandled system error"}, {"user": df}]
    }
    run = shipped_kb("eval", "--dialogues", written(tmp_path / "set.jsonl", [dialogue]), "--json")
    checks = json.loads(run.stdout)["checks"]
    assert checks["dialogues"] == 1
    assert 1 <= checks["chosen"] <= checks["fixed"]


def test_the_table_names_what_is_not_good(shipped_kb: Run, tmp_path: Path) -> None:
    run = shipped_kb("eval", "--dialogues", written(tmp_path / "set.jsonl"))
    assert run.returncode == 0, run.stderr
    text = run.stdout.decode()
    assert "0.714" in text
    assert "at the end in 0.667 of the 3 dialogues" in " ".join(text.split())
    assert "wrong turn 1: lacks words that no reply has" in text
    assert "wrong turn 2: has (?i:evidence)" in text


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "truncated"),
        ("[]", "Expected `object`"),
        ('{"turns": []}', "length >= 1"),
        ('{"turns": [{"must": ["x"]}]}', "user"),
        ('{"turns": [{"user": "x", "must": "y"}]}', "Expected `array`"),
        ('{"turns": [{"user": "x", "must": ["("]}]}', "does not compile"),
        ('{"turns": [{"user": "x", "must_not": ["(?z)"]}]}', "does not compile"),
        ('{"turns": [{"user": "x"}], "cause_pattern": "(x"}', "does not compile"),
    ],
)
def test_a_bad_line_is_one_sentence(
    shipped_kb: Run, tmp_path: Path, line: str, reason: str
) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text('{"turns": [{"user": "x"}]}\n\n' + line)
    run = shipped_kb("eval", "--dialogues", path)
    assert (run.returncode, run.stdout) == (2, b"")
    sentence = run.stderr.decode()
    assert f"{path}:3 is not a dialogue: " in sentence
    assert reason in sentence
    assert sentence.count("\n") == 1


@pytest.mark.parametrize("content", [None, b"", b"\n\n", b"\xff\xfe\x00"])
def test_a_file_without_dialogues_is_one_sentence(
    shipped_kb: Run, tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "set.jsonl"
    if content is not None:
        path.write_bytes(content)
    run = shipped_kb("eval", "--dialogues", path)
    assert (run.returncode, run.stdout) == (2, b"")
    assert b"Traceback" not in run.stderr
    assert str(path) in run.stderr.decode()


def test_one_thing_is_measured_at_a_time(shipped_kb: Run, tmp_path: Path) -> None:
    path = written(tmp_path / "set.jsonl")
    assert shipped_kb("eval", "--dialogues", path, "--chat").returncode == 2
