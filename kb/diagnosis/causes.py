"""Which causes of a symptom are likely, after the lines and the outputs that were read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter

from index.documents import Pattern
from kb.corpus.base import KnowledgeBase
from kb.diagnosis.confidence import belief_of_causes
from kb.diagnosis.model import Match, PlaybookMatch
from kb.evidence import Evidence
from kb.playbook import Cause, Playbook

LINE_RATIO = 10.0
"""Of a line that only one cause of a symptom prints: nine of ten logs with it are of that cause
where all were equally likely. The tenth quotes it, or failed of more than one thing."""


def causes_of_lines(
    evidence: Evidence, playbooks: Iterable[PlaybookMatch], knowledge: KnowledgeBase
) -> dict[str, float]:
    """Ratios of the likelihoods of the causes, as `playbook:cause`, that alone print a line of the
    evidence."""
    text = "\n".join(line.text for line in evidence.lines)
    ratios: dict[str, float] = {}
    for playbook in (match.playbook for match in playbooks):
        seen = knowledge.guides.lines_of_symptom(playbook, text)
        for line in playbook.header.lines:
            if line.cause and Pattern(line.pattern, line.regex) in seen:
                ratios[f"{playbook.id}:{line.cause}"] = LINE_RATIO
    return ratios


def likeliest_causes(
    playbook: Playbook, matches: Iterable[Match], ratios: Mapping[str, float]
) -> list[Cause]:
    """The causes of a symptom, likeliest first."""
    shares = {match.incident.id: match.confidence for match in matches}
    belief = belief_of_causes(playbook, shares, ratios)
    return sorted(playbook.body.causes, key=lambda one: -belief.shares[one.key])


def cause_pointed_to(
    playbooks: Iterable[PlaybookMatch], matches: Sequence[Match], ratios: Mapping[str, float]
) -> tuple[Playbook, Cause] | None:
    """The likeliest of the causes for which something that was read speaks; None without any."""
    shares = {match.incident.id: match.confidence for match in matches}
    found: list[tuple[float, Playbook, Cause]] = []
    for match in playbooks:
        belief = belief_of_causes(match.playbook, shares, ratios)
        found += [
            (match.confidence * belief.shares[cause.key], match.playbook, cause)
            for cause in match.playbook.body.causes
            if ratios.get(f"{match.playbook.id}:{cause.key}", 1.0) > 1
        ]
    best = max(found, key=itemgetter(0), default=None)
    return best[1:] if best else None
