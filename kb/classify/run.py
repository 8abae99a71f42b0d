"""One run over all units: records and reports the outcomes of a classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from index.progress import Notify, Report
from kb.classify.journal import Journal
from kb.classify.result import Outcome, Result, Unreadable
from kb.log.clean import decode_path

UnitClassifier = Callable[[Sequence[str]], Iterable[Outcome]]
"""Diagnoses units, in any order."""


class Run(msgspec.Struct, frozen=True):
    """The result of a run."""

    results: tuple[Result, ...]
    unreadable: tuple[Unreadable, ...]
    stopped: BaseException | None
    """What ended it early, such as Ctrl-C: units are missing. To be raised when what is done is
    written."""


def run(
    units: Sequence[str],
    classify: UnitClassifier,
    journal: Journal | None,
    report: Report,
    notify: Notify,
) -> Run:
    """Classify all units but those that the journal holds. Whatever ends it, what is done is
    kept."""
    results = list(journal.results) if journal else []
    done = {result.path for result in results}
    left = [unit for unit in units if decode_path(unit) not in done]
    unreadable: list[Unreadable] = []
    stopped: BaseException | None = None
    try:
        for outcome in _reported(classify(left), len(units) - len(left), len(units), report):
            if isinstance(outcome, Unreadable):
                unreadable.append(outcome)
                notify(outcome.reason)
                continue
            results.append(outcome)
            if journal:
                journal.add(outcome, notify)
            for notice in outcome.notices:
                notify(notice)
    except BaseException as reason:  # noqa: BLE001  the caller raises it
        stopped = reason
    return Run(tuple(results), tuple(unreadable), stopped)


def _reported(
    outcomes: Iterable[Outcome], done: int, total: int, report: Report
) -> Iterator[Outcome]:
    for number, outcome in enumerate(outcomes, done + 1):
        yield outcome
        report(number, total)
