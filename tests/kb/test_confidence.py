"""The shape of the confidence: more evidence never lowers it, foreign text gets nothing."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kb.confidence import ANSWER_AT, SHOW_AT, Signs, confidences, load_model
from kb.diagnosis import diagnose
from kb.knowledge import Knowledge
from kb.log import Log

SOME = Signs(strong=0.5, weak=1.0, coverage=0.4, mass=8, line=2, meaning=0.5, systems=1.0)
FIELDS = ("strong", "weak", "coverage", "mass", "line", "meaning", "systems", "codes")


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("base", [Signs(weak=0.1), SOME])
def test_more_of_any_sign_never_lowers_it(field: str, base: Signs) -> None:
    base = replace(base, coverage=base.coverage or 0.2, mass=base.mass or 1.0)
    steps = [getattr(base, field) + n / 10 for n in range(30)]
    sure = [confidences([replace(base, **{field: value})])[0] for value in steps]
    assert sure == sorted(sure)
    assert sure[-1] > sure[0]


def test_a_conflicting_code_lowers_it() -> None:
    assert confidences([replace(SOME, conflict=1.0)]) < confidences([SOME])


def test_nothing_that_speaks_is_exactly_nothing() -> None:
    assert confidences([Signs(), Signs(meaning=0.25, coverage=0.1, mass=3, line=1)]) == [0.0, 0.0]


def test_one_strong_signature_of_one_record_is_a_match() -> None:
    signs = Signs(strong=1.0, coverage=0.5, mass=4, line=4)
    assert confidences([signs])[0] >= ANSWER_AT


def test_of_two_that_fit_equally_well_none_is_answered() -> None:
    alone = confidences([SOME])[0]
    first, second = confidences([SOME, SOME])
    assert second <= first < ANSWER_AT <= alone
    assert first + second <= 1


def test_all_together_stay_below_certainty() -> None:
    perfect = Signs(strong=9, weak=9, coverage=1, mass=99, line=99, meaning=1, systems=9)
    assert confidences([perfect])[0] < 1
    assert sum(confidences([perfect] * 5)) <= 1


def test_weights_have_the_right_sign() -> None:
    model = load_model()
    assert all(getattr(model, field) >= 0 for field in FIELDS)
    assert model.conflict <= 0
    assert 0 < SHOW_AT < ANSWER_AT < 1


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
def test_foreign_text_is_next_to_nothing(knowledge: Knowledge, text: str) -> None:
    assert diagnose(Log.from_text(text), knowledge).matches == ()


def test_more_of_the_same_evidence_does_not_lower_the_right_answer(knowledge: Knowledge) -> None:
    line = "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Q1 (size 9637888)"
    weaker = "shared memory segment could not be created by nccl in the container"

    def sure(text: str) -> float:
        matches = diagnose(Log.from_text(text), knowledge).matches
        assert matches[0].incident.id == "nccl-shm-too-small-container"
        return matches[0].confidence

    assert sure(weaker) <= sure(line) <= sure(f"{weaker}\n{line}") + 0.02
