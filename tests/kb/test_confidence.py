"""The shape of the confidence: more evidence never lowers it, foreign text gets nothing."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.diagnosis.confidence import confidences
from kb.diagnosis.features import Features, load_model
from kb.log import Log
from kb.verdict import ANSWER_AT, SHOW_AT, Verdict

SOME = Features(
    strong_signatures=0.5,
    weak_signatures=1.0,
    coverage=0.4,
    shared_idf=8,
    best_line_idf=2,
    cosine=0.5,
    shared_systems=1.0,
)
FIELDS = (
    "strong_signatures",
    "weak_signatures",
    "coverage",
    "shared_idf",
    "best_line_idf",
    "cosine",
    "shared_systems",
    "shared_code",
)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("base", [Features(weak_signatures=0.1), SOME])
def test_more_of_any_sign_never_lowers_it(field: str, base: Features) -> None:
    base = replace(base, coverage=base.coverage or 0.2, shared_idf=base.shared_idf or 1.0)
    steps = [getattr(base, field) + n / 10 for n in range(30)]
    sure = [confidences([replace(base, **{field: value})])[0] for value in steps]
    assert sure == sorted(sure)
    assert sure[-1] > sure[0]


def test_a_conflicting_code_lowers_it() -> None:
    assert confidences([replace(SOME, other_code=1.0)]) < confidences([SOME])


def test_nothing_that_speaks_is_exactly_nothing() -> None:
    assert confidences(
        [Features(), Features(cosine=0.25, coverage=0.1, shared_idf=3, best_line_idf=1)]
    ) == [
        0.0,
        0.0,
    ]


def test_one_strong_signature_of_one_record_is_a_match() -> None:
    signs = Features(strong_signatures=1.0, coverage=0.5, shared_idf=4, best_line_idf=4)
    assert confidences([signs])[0] >= ANSWER_AT


def test_of_two_that_fit_equally_well_none_is_answered() -> None:
    alone = confidences([SOME])[0]
    first, second = confidences([SOME, SOME])
    assert second <= first < ANSWER_AT <= alone
    assert first + second <= 1


def test_all_together_stay_below_certainty() -> None:
    perfect = Features(
        strong_signatures=9,
        weak_signatures=9,
        coverage=1,
        shared_idf=99,
        best_line_idf=99,
        cosine=1,
        shared_systems=9,
    )
    assert confidences([perfect])[0] < 1
    assert sum(confidences([perfect] * 5)) <= 1


def test_weights_have_the_right_sign() -> None:
    weights = {row.name: row.weight for row in load_model().feature}
    assert all(weights[field] >= 0 for field in FIELDS)
    assert weights["other_code"] <= 0
    assert 0 < SHOW_AT < ANSWER_AT < 1


def test_a_table_without_a_row_for_each_feature_is_refused() -> None:
    model = load_model()
    with pytest.raises(ValueError, match="are not the features"):
        replace(model, feature=model.feature[1:])


@pytest.mark.parametrize(
    "text",
    [
        "how do I bake bread",
        "The quick brown fox jumps over the lazy dog near the river bank.",
        "今天晚上吃什么好呢，附近有没有好吃的火锅？",
        "SELECT name, price FROM products WHERE category = 'books' ORDER BY price",
        "x",
    ],
)
def test_foreign_text_is_next_to_nothing(knowledge: KnowledgeBase, text: str) -> None:
    assert diagnose(Log.from_text(text), knowledge).matches == ()


def test_more_of_the_same_evidence_does_not_lower_the_right_answer(
    knowledge: KnowledgeBase,
) -> None:
    line = "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Q1 (size 9637888)"
    weaker = "shared memory segment could not be created by nccl in the container"

    def sure(text: str) -> float:
        matches = diagnose(Log.from_text(text), knowledge).matches
        assert matches[0].incident.id == "nccl-shm-too-small-container"
        return matches[0].confidence

    assert sure(weaker) <= sure(line) <= sure(f"{weaker}\n{line}") + 0.02


def test_of_a_log_that_nothing_fits_the_two_nearest_are_named(knowledge: KnowledgeBase) -> None:
    text = "ERROR the flux capacitor stalled while the widget of tray 7 jammed"
    diagnosis = diagnose(Log.from_text(text), knowledge)
    assert diagnosis.matches == ()
    assert len({near.incident.id for near in diagnosis.nearest}) == 2
    assert all(near.why_not.endswith(".") for near in diagnosis.nearest)


def test_a_line_that_other_causes_print_makes_a_match_only_beside_another(
    knowledge: KnowledgeBase,
) -> None:
    line = "[rank0]: RuntimeError: CUDA error: system not yet initialized"
    state = "    Fabric\n        State                             : In Progress"
    alone = diagnose(Log.from_text(line), knowledge)
    both = diagnose(Log.from_text(f"{line}\n{state}"), knowledge)
    record = "nvidia-cuda802-fabricmanager-not-running"
    assert alone.matches[0].incident.id == both.matches[0].incident.id == record
    assert (alone.verdict, both.verdict) == (Verdict.POSSIBLE, Verdict.MATCH)
