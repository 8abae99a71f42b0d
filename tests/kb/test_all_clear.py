"""When a log gets the all-clear: it ends well, what went wrong on its way was made good, and nobody
speaks in it. `benchmarks/all_clear.jsonl` holds a text of each kind."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.evidence.references import falls_short, lacks_some, stands_still
from kb.evidence.remarks import is_remark
from kb.evidence.setbacks import without_setbacks
from kb.log import Log
from kb.verdict import Verdict


class Case(msgspec.Struct, frozen=True):
    """A `healthy` log, the `tail` of one whose work was not done, or what somebody `told`."""

    kind: str
    text: str


CASES = msgspec.json.decode(
    f"[{','.join(Path('benchmarks/all_clear.jsonl').read_text(encoding='utf-8').splitlines())}]",
    type=list[Case],
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}: {case.text[-40:]}")
def test_the_all_clear_is_for_healthy_logs_alone(case: Case, knowledge: KnowledgeBase) -> None:
    verdict = diagnose(Log.from_text(case.text), knowledge).verdict
    assert (verdict is Verdict.HEALTHY) == (case.kind == "healthy")


STEPS = ["step 10/20 loss 2.1", "step 20/20 loss 1.9"]
END = "training finished, exit code 0"


def verdict_of(*lines: str, knowledge: KnowledgeBase) -> Verdict:
    return diagnose(Log.from_text("\n".join(lines)), knowledge).verdict


@pytest.mark.parametrize(
    ("setback", "answer"),
    [
        ("part 7 failed: connection reset, retry 1/3", "part 7 ok"),
        ("job 12 was preempted, requeued", "resumed from step 9"),
        ("节点 n3 掉线，自动重启训练", "[INFO] 从 step 9 恢复训练"),
    ],
)
def test_a_setback_that_was_made_good_does_not_count(
    setback: str, answer: str, knowledge: KnowledgeBase
) -> None:
    assert verdict_of(setback, answer, *STEPS, END, knowledge=knowledge) is Verdict.HEALTHY
    for lines in (
        [setback, *STEPS, END],
        [answer, *STEPS, setback, END],
        [setback, answer, *STEPS[:1], setback, *STEPS[1:], END],
        [setback, answer, "RuntimeError: boom", *STEPS, END],
        [setback, answer, "CUDA error: unknown error, restarting workers", *STEPS, END],
    ):
        assert verdict_of(*lines, knowledge=knowledge) is not Verdict.HEALTHY, lines


def test_a_grave_failure_is_no_setback() -> None:
    assert without_setbacks(["part 3 failed: no space left, retrying", "part 3 ok"]) is None
    assert without_setbacks(STEPS) is None


def test_a_result_is_an_end_only_behind_the_last_step(knowledge: KnowledgeBase) -> None:
    result = "checkpoint saved to out/last.pt"
    assert verdict_of("loaded 3 files", *STEPS, result, knowledge=knowledge) is Verdict.HEALTHY
    for lines in (
        ["loaded 3 files", STEPS[0], result],
        ["loaded 3 files", "epoch 3: 100%|####| 20/20", result],
        ["loaded 3 files", *STEPS, result, "starting the evaluation"],
        ["loaded 3 files", *STEPS, "saving the checkpoint"],
    ):
        assert verdict_of(*lines, knowledge=knowledge) is not Verdict.HEALTHY, lines


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("accuracy 41.0 (previous release: 77.5)", True),
        ("accuracy 77.1 (previous release: 77.5)", False),
        ("acc = 0.51  f1 = 0.02 (baseline: acc = 0.93  f1 = 0.91)", True),
        ("acc = 0.92  f1 = 0.90 (baseline: acc = 0.93  f1 = 0.91)", False),
        ("duplicates 9.1% (expected 8-10%)", False),
        ("duplicates 41% (expected 8-10%)", True),
        ("吞吐 900 token/s（基线 3200）", True),
        ("困惑度 5.91（上次 5.98）", False),
        ("[Rank 0] step=4000, skipped=3990", True),
        ("[Rank 0] step=4000, skipped=3", False),
        ("8,000,000 read, 91,000 kept", True),
        ("读取 8000 条，保留 7900 条", False),
        ("loss 1.2 (target < 2.0)", False),
        ("dedup: 15.2% removed (expected 8-20%)", False),
        ("dedup: 8.4% removed (expected 9-20%)", True),
    ],
)
def test_a_number_is_held_against_what_is_stated(line: str, *, expected: bool) -> None:
    assert falls_short(line) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["found 900 files", "uploaded 412 files"], True),
        (["found 900 files", "uploaded 900 files"], False),
        (["found 900 files", "uploaded 9 shards"], False),
        (["计划 90 张表，完成 71 张"], True),
        (["计划 90 张表，完成 90 张"], False),
    ],
)
def test_less_was_done_than_was_planned(lines: list[str], *, expected: bool) -> None:
    assert lacks_some(lines) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["the export completed, the file opens blank"], True),
        (["脚本打印“全部完成”"], True),
        (["exit code 0", "the model file weighs nothing"], True),
        (["2026-06-01 10:00:00 INFO training finished, 20 steps"], False),
        (["rank 0: sum ok", "user@n1:~$ echo $?", "0"], False),
        (["step 1 ok", "step 2 ok", "step 3 ok", "输出目录里面没东西，很怪"], True),
        (["step 1 ok", "step 2 ok", "step 3 ok", "训练完成"], False),
        (["第 1 步", "第 2 步", "第 3 步", "输出目录检查通过"], False),
    ],
)
def test_a_remark_is_told_by_its_shape(lines: list[str], *, expected: bool) -> None:
    assert is_remark(lines) == expected


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        (["2.3026"] * 4, True),
        (["2.3026"] * 3, False),
        (["2.3031", "2.3026", "2.3026", "2.3026"], False),
        (["0.7"] * 4, False),
        (["2.3026e-05"] * 4, False),
    ],
)
def test_a_loss_that_stands_still_is_no_good_end(losses: list[str], *, expected: bool) -> None:
    lines = [f"epoch {number} - loss: {loss} - acc: 0.1" for number, loss in enumerate(losses)]
    assert stands_still(lines) == expected
