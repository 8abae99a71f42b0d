"""What the records say to look at: their `Distinguish` items, each as a question."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from kb.incident import Distinction, Incident
from kb.questions.belief import Option, QuestionPlan, Topic

YES, NO = "yes", "no"

YES_IF_OWNER = 0.85
"""Likelihood of "yes" to an observation of the right record. Below 1: people misread, cases
differ."""
YES_IF_OTHER = 0.08
"""Likelihood of "yes" under the record that the observation rules out."""
YES_IF_LINKED = 0.35
"""Likelihood of "yes" under a record that names the owner as a look-alike, or is named by it: it
differs from the owner in something, perhaps in this."""
YES_IF_ANY = 0.5
"""Likelihood of "yes" under records that say nothing about it, and causes without a record."""

PRINTED = {
    "collective": re.compile(r"OpType|_?ALL_?GATHER|ALL_?REDUCE"),
    "sequence": re.compile(r"SeqNum|sequence number"),
    "elements": re.compile(r"NumelIn|NumelOut|one[- ]element"),
    "timeout_ms": re.compile(r"Timeout\(ms\)"),
    "xid": re.compile(r"\bXid\b"),
    "cuda_errors": re.compile(r"\b(?:CUDA )?error \d{3}\b"),
}
"""Facts by their names in `Facts`, and how an observation asks for them. Where the log states one,
it is not asked: the evidence has it already."""


def is_printed(inquiry: QuestionPlan, stated: Collection[str]) -> bool:
    """Whether the log states what is asked."""
    return any(PRINTED[name].search(inquiry.text) for name in stated)


def observations(candidates: Sequence[Incident]) -> Iterator[QuestionPlan]:
    """The questions that the candidates' records hold, in the order of the candidates."""
    linked = _links(candidates)
    for incident in candidates:
        for index, item in enumerate(incident.body.distinguish):
            yield _inquiry(incident.id, index, item, linked[incident.id])


def _links(candidates: Sequence[Incident]) -> Mapping[str, set[str]]:
    """For each candidate the candidates that it is told from, or that are told from it."""
    linked: dict[str, set[str]] = {incident.id: set() for incident in candidates}
    for incident in candidates:
        for item in incident.body.distinguish:
            if item.other in linked:
                linked[incident.id].add(item.other)
                linked[item.other].add(incident.id)
    return linked


def _inquiry(owner: str, index: int, item: Distinction, linked: set[str]) -> QuestionPlan:
    yes = {
        **dict.fromkeys(linked, YES_IF_LINKED),
        item.other: YES_IF_OTHER,
        owner: YES_IF_OWNER,
    }
    no = {identifier: 1 - chance for identifier, chance in yes.items()}
    return QuestionPlan(
        topic=Topic.OBSERVATION,
        key=f"{owner}#{index}",
        text=" ".join(item.question.split()),
        options=(Option(YES, yes, YES_IF_ANY), Option(NO, no, 1 - YES_IF_ANY)),
        records=(owner, item.other),
    )
