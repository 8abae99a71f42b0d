"""Rates over outcomes.

Recall and reciprocal rank as in Manning, Raghavan and Schütze, *Introduction to Information
Retrieval*, chapter 8; expected calibration error over equal-width bins as in Guo et al., *On
Calibration of Modern Neural Networks*, 2017, section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from kb.evaluate.cases import AMBIGUOUS
from kb.evaluate.outcome import Outcome

SCHEMA = 1
"""Grows when a key is removed or changes its meaning."""
CONFIDENCE_BINS = 10
"""Number of bins of confidence, each a tenth wide; see the calibration error above."""

Rates = TypeVar("Rates")


class Ranking(msgspec.Struct, frozen=True):
    """How well answerable reports are answered. Shares from 0 to 1."""

    reports: int
    recall_at_1: float
    recall_at_3: float
    recall_at_5: float
    mrr: float
    """Mean reciprocal rank."""
    answered: float
    """Share that got the verdict `match`."""
    wrong: float
    """Share that got the verdict `match` with a wrong incident first."""


class Rejection(msgspec.Struct, frozen=True):
    """How well reports are left unanswered for which nothing known fits."""

    reports: int
    false_matches: int
    rate: float


class Remedy(msgspec.Struct, frozen=True):
    """How often the remedy is shown, whatever record it stands in: over reports that name one."""

    reports: int
    at_1: float
    at_3: float
    matches: int
    """Answers given as `match`."""
    held_by_matches: float
    """Of these, the share whose first incident holds it."""


class Bin(msgspec.Struct, frozen=True):
    """Answers of like confidence: what was said, and how many were right."""

    low: float
    high: float
    answers: int
    said: float
    right: float


class Point(msgspec.Struct, frozen=True):
    """If only answers from this confidence on were given."""

    confidence: float
    coverage: float
    """Share of the answerable reports that get the right answer or a wrong one."""
    precision: float
    """Share of right ones among all answers, those to unanswerable reports included."""


class Miss(msgspec.Struct, frozen=True):
    """A report whose right incident does not come first, or that should not be answered."""

    id: str
    kind: str
    lang: str
    relevant: tuple[str, ...]
    position: int | None
    verdict: str
    winner: str | None
    confidence: float
    why: tuple[str, ...]
    """Lines that spoke for the winner, with the channel they spoke through."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The whole evaluation."""

    schema: int = SCHEMA
    reports: int
    overall: Ranking
    by_kind: dict[str, Ranking]
    by_language: dict[str, Ranking]
    by_system: dict[str, Ranking]
    """By the first system of the first right incident."""
    negatives: Rejection
    negatives_by_kind: dict[str, Rejection]
    remedy: Remedy
    separation: float
    """Area under the ROC curve of the confidence, answerable reports against the others."""
    calibration_error: float
    reliability: tuple[Bin, ...]
    coverage: tuple[Point, ...]
    misses: tuple[Miss, ...]
    false_matches: tuple[Miss, ...]


def measure(outcomes: Sequence[Outcome], systems: Mapping[str, str]) -> Report:
    """Put outcomes together; `systems` gives the first system of an incident by its id."""
    counted = [outcome for outcome in outcomes if outcome.case.kind != AMBIGUOUS]
    labelled = [outcome for outcome in counted if outcome.case.is_labelled]
    answerable = [outcome for outcome in labelled if outcome.answerable]
    others = [outcome for outcome in labelled if not outcome.answerable]

    def system(outcome: Outcome) -> str:
        return next(systems[key] for key in outcome.case.relevant if key in systems)

    bins = _reliability(counted)
    return Report(
        reports=len(outcomes),
        overall=_ranking(answerable),
        by_kind=_grouped(answerable, lambda outcome: outcome.case.kind, _ranking),
        by_language=_grouped(answerable, lambda outcome: outcome.case.lang, _ranking),
        by_system=_grouped(answerable, system, _ranking),
        negatives=_rejection(others),
        negatives_by_kind=_grouped(others, lambda outcome: outcome.case.kind, _rejection),
        remedy=_remedy([outcome for outcome in counted if outcome.case.fix_must_match]),
        separation=_separation(answerable, others),
        calibration_error=_calibration_error(bins),
        reliability=bins,
        coverage=_coverage(answerable, others),
        misses=tuple(_miss(outcome) for outcome in answerable if not outcome.is_right),
        false_matches=tuple(_miss(outcome) for outcome in others if outcome.is_answer),
    )


def _grouped(
    outcomes: Sequence[Outcome],
    key: Callable[[Outcome], str],
    summarise: Callable[[Sequence[Outcome]], Rates],
) -> dict[str, Rates]:
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(key(outcome), []).append(outcome)
    return {name: summarise(groups[name]) for name in sorted(groups)}


def _share(true: Sequence[bool]) -> float:
    return round(sum(true) / len(true), 4) if true else 0.0


def _ranking(outcomes: Sequence[Outcome]) -> Ranking:
    positions = [outcome.position or float("inf") for outcome in outcomes]
    return Ranking(
        reports=len(outcomes),
        recall_at_1=_share([position <= 1 for position in positions]),
        recall_at_3=_share([position <= 3 for position in positions]),
        recall_at_5=_share([position <= 5 for position in positions]),
        mrr=round(sum(1 / position for position in positions) / max(len(positions), 1), 4),
        answered=_share([outcome.is_answer for outcome in outcomes]),
        wrong=_share([outcome.is_answer and not outcome.is_right for outcome in outcomes]),
    )


def _rejection(outcomes: Sequence[Outcome]) -> Rejection:
    false = [outcome.is_answer for outcome in outcomes]
    return Rejection(len(outcomes), sum(false), _share(false))


def _remedy(outcomes: Sequence[Outcome]) -> Remedy:
    positions = [outcome.remedy_position or float("inf") for outcome in outcomes]
    answers = [outcome.remedy_position == 1 for outcome in outcomes if outcome.is_answer]
    return Remedy(
        reports=len(outcomes),
        at_1=_share([position <= 1 for position in positions]),
        at_3=_share([position <= 3 for position in positions]),
        matches=len(answers),
        held_by_matches=_share(answers),
    )


def _reliability(outcomes: Sequence[Outcome]) -> tuple[Bin, ...]:
    bins: list[list[Outcome]] = [[] for _ in range(CONFIDENCE_BINS)]
    for outcome in outcomes:
        if outcome.matches:
            bins[min(int(outcome.confidence * CONFIDENCE_BINS), CONFIDENCE_BINS - 1)].append(
                outcome
            )
    return tuple(
        Bin(
            low=number / CONFIDENCE_BINS,
            high=(number + 1) / CONFIDENCE_BINS,
            answers=len(inside),
            said=round(sum(outcome.confidence for outcome in inside) / len(inside), 4),
            right=_share([outcome.is_right for outcome in inside]),
        )
        for number, inside in enumerate(bins)
        if inside
    )


def _calibration_error(bins: Sequence[Bin]) -> float:
    total = sum(one.answers for one in bins)
    apart = sum(one.answers * abs(one.said - one.right) for one in bins)
    return round(apart / total, 4) if total else 0.0


def _separation(answerable: Sequence[Outcome], others: Sequence[Outcome]) -> float:
    """The share of pairs in which the answerable report is the surer one; ties count half."""
    pairs = [
        (one.confidence > other.confidence) + 0.5 * (one.confidence == other.confidence)
        for one in answerable
        for other in others
    ]
    return round(sum(pairs) / len(pairs), 4) if pairs else 0.0


def _coverage(answerable: Sequence[Outcome], others: Sequence[Outcome]) -> tuple[Point, ...]:
    points = []
    everything = [*answerable, *others]
    for bar in sorted({outcome.confidence for outcome in everything if outcome.matches}):
        answers = [outcome for outcome in everything if outcome.confidence >= bar]
        points.append(
            Point(
                confidence=bar,
                coverage=_share([outcome.confidence >= bar for outcome in answerable]),
                precision=_share([outcome.is_right for outcome in answers]),
            )
        )
    return tuple(points)


def _miss(outcome: Outcome) -> Miss:
    first = outcome.matches[0] if outcome.matches else None
    return Miss(
        id=outcome.case.id,
        kind=outcome.case.kind,
        lang=outcome.case.lang,
        relevant=outcome.case.relevant,
        position=outcome.position,
        verdict=outcome.verdict,
        winner=first.incident.id if first else None,
        confidence=outcome.confidence,
        why=tuple(f"{why.by}: {why.line.text}" for why in first.why) if first else (),
    )
