"""What the words and lines of a log say of its symptom, before any cause is weighed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Set

from kb.corpus.base import KnowledgeBase
from kb.corpus.symptom_names import Likeness
from kb.corpus.tier import TierName
from kb.diagnosis.confidence import share_among_playbooks
from kb.diagnosis.features import PlaybookFeatures
from kb.diagnosis.query import to_query, without_requests
from kb.evidence import Evidence
from kb.evidence.paces import slowness_in

MAX_QUESTION_LINES = 2
"""A text of more lines is no short question."""

MAX_NAMED_LINES = 10
"""Lines compared with the names of symptoms, most telling first."""

MAX_LINES = 1.0
"""Of the lines of a symptom: one crash prints several of them."""

MAX_CONTAINED = 3.0
"""Of the words of a name in a sentence (1 = one rare word): three are enough."""


def may_have_symptom(evidence: Evidence) -> bool:
    """Whether something is wrong, or asked; the words of a log that only goes on say nothing."""
    return evidence.states_failure or evidence.told or may_be_question(evidence)


def may_be_question(evidence: Evidence) -> bool:
    """Whether it is as short as a question."""
    return evidence.total_lines <= MAX_QUESTION_LINES


def symptom_features(evidence: Evidence, knowledge: KnowledgeBase) -> list[PlaybookFeatures]:
    """Of all playbooks, in the order of the shelf, without any incident."""
    evidence = without_requests(evidence)
    slowness = list(filter(None, (slowness_in(line.text) for line in evidence.lines)))
    printed = (part for line in evidence.lines for part in (line.text, *line.stack))
    seen = knowledge.guides.symptom_lines("\n".join([*printed, *slowness]))
    declaring = Counter(pattern for patterns in seen.values() for pattern in patterns)
    found = {one.id: one for one in knowledge.search(to_query(evidence), TierName.GUIDES)}
    likeness = knowledge.guides.symptom_names.likeness(
        [*(line.text for line in evidence.lines[:MAX_NAMED_LINES]), *slowness]
    )
    playbooks = knowledge.guides.playbooks
    # What the search did not bring up is at most as near as the last of what it did.
    near = [found[one.id] for one in playbooks if one.id in found]
    coverage = min((one.coverage for one in near), default=0.0)
    cosine = min((one.cosine for one in near if one.cosine > 0), default=0.0)
    features = []
    for playbook in playbooks:
        candidate = found.get(playbook.id)
        named = likeness.get(playbook.id, Likeness())
        lines = sum(1 / declaring[pattern] for pattern in seen[playbook.id])
        features.append(
            PlaybookFeatures(
                lines=min(lines, MAX_LINES),
                named=named.shared,
                contained=min(named.contained, MAX_CONTAINED),
                coverage=candidate.coverage if candidate else coverage,
                cosine=max(candidate.cosine if candidate else 0.0, cosine),
            )
        )
    return features


def symptom_shares(evidence: Evidence, knowledge: KnowledgeBase) -> Mapping[str, float]:
    """How likely each symptom is, by id of its playbook; what is left is none of them. 0 to 1."""
    playbooks = knowledge.guides.playbooks
    if not evidence.lines or not playbooks:
        return {}
    shares = share_among_playbooks(symptom_features(evidence, knowledge), 1.0)
    return dict(zip((one.id for one in playbooks), shares, strict=True))


def apart(shares: Mapping[str, float], symptoms: Set[str]) -> float:
    """How surely what is seen is something else than these symptoms. 0 to 1; 0 where either is
    unknown. By the affinity of two distributions (Bhattacharyya), the one even over `symptoms`,
    as far as the likeliest symptom is sure."""
    known = sum(shares.values())
    if not symptoms or not known:
        return 0.0
    shared = sum(math.sqrt(shares.get(one, 0.0) / known / len(symptoms)) for one in symptoms)
    return max(shares.values()) * (1.0 - min(shared, 1.0))
