"""The answer as values: what views show, services send and a conversation starts from."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from kb.check import Check, Command
from kb.checks import Observation
from kb.evidence import Evidence, EvidenceLine
from kb.incident import Incident
from kb.job import Job
from kb.lead import Lead
from kb.playbook import Playbook
from kb.questions import Belief, QuestionPlan, next_question, seen_in
from kb.verdict import LIKELY_AT, SYMPTOM_GUESS_AT, Verdict, decide

MAX_MATCHES_SHOWN = 5
"""Default number of matches shown; nobody reads more than fit on a screen."""

DONT_KNOW = "don't know"
"""A valid answer to every question; it changes nothing."""


class By(StrEnum):
    """Which channel a line speaks through."""

    SIGNATURE = "signature"
    WORDS = "words"
    MEANING = "meaning"
    OBSERVATION = "observation"
    """What the output of a check shows names the incident."""


class Why(msgspec.Struct, frozen=True):
    """A line of the log that speaks for an incident."""

    line: EvidenceLine
    by: By


class Match(msgspec.Struct, frozen=True):
    """An incident with its confidence and evidence."""

    incident: Incident
    confidence: float
    """0 to 1."""
    why: tuple[Why, ...]


class Note(msgspec.Struct, frozen=True):
    """A known follow-on error or known noise that the log holds."""

    incident: Incident
    why: tuple[Why, ...]


class NearMiss(msgspec.Struct, frozen=True):
    """A record that comes close and is not shown as a match."""

    incident: Incident
    why_not: str
    """One sentence."""


class PlaybookMatch(msgspec.Struct, frozen=True):
    """A symptom that the log may have."""

    playbook: Playbook
    confidence: float
    """0 to 1. With those of the incidents it adds up to at most 1."""
    share: float
    """0 to 1, of what the incidents leave: how sure the symptom is, whatever its cause."""


class NextCheck(msgspec.Struct, frozen=True):
    """What to run next, and for what."""

    check: Check
    command: Command
    """The form for the environment of the log."""
    why: str


class Question(msgspec.Struct, frozen=True):
    """What would change the order of the matches."""

    text: str
    answers: tuple[str, ...] = ("yes", "no", DONT_KNOW)


class Diagnosis(msgspec.Struct, frozen=True):
    """The whole answer."""

    verdict: Verdict
    matches: tuple[Match, ...]
    """Best first; records of kind `incident` only."""
    notes: tuple[Note, ...]
    candidates: tuple[Match, ...]
    """The matches and those behind them that are too unlikely to be shown, for a conversation to
    choose among; empty where nothing known fits."""
    job: Job | None
    """Who failed first; None where the log is not from several ranks."""
    evidence: Evidence
    notices: tuple[str, ...]
    """What the user should know about the input itself."""
    elapsed_ms: float
    nearest: tuple[NearMiss, ...] = ()
    """Where nothing fits: the closest records, and why they were rejected."""
    observations: tuple[Observation, ...] = ()
    """What the outputs of checks in the input show, abnormal ones first."""
    playbooks: tuple[PlaybookMatch, ...] = ()
    """What the symptom may be, best first; behind the incidents where one matches."""
    pointed: dict[str, float] = {}
    """Ratios of the likelihoods of the causes of the playbooks, as `playbook:cause`, after the
    lines and the outputs in the input."""
    next: NextCheck | None = None
    """None for a match, whose fix is the next step, and where no playbook fits."""
    leads: tuple[Lead, ...] = ()
    """Reports of the user's backlog, best first; none for a match. See `kb.backlog`."""

    def with_matches(self, matches: tuple[Match, ...]) -> Diagnosis:
        """The same diagnosis after a conversation ranked its candidates again."""
        verdict = self.verdict_of(matches)
        return msgspec.structs.replace(self, matches=matches, verdict=verdict)

    def verdict_of(self, matches: tuple[Match, ...]) -> Verdict:
        """What it comes to when these are the matches."""
        if matches:
            return decide(matches[0].confidence)
        return Verdict.UNKNOWN if self.candidates else self.verdict

    @property
    def symptom_leads(self) -> bool:
        """Whether the symptom is known better than its cause."""
        if self.verdict is Verdict.MATCH:
            return False
        return symptom_leads(self.playbooks, self.matches, in_words=not self.evidence.is_log)

    @property
    def question(self) -> Question | None:
        """The most informative question, computed lazily."""
        plan = first_question(self)
        return to_question(plan) if plan else None


def symptom_leads(
    playbooks: Sequence[PlaybookMatch], matches: Sequence[Match], *, in_words: bool
) -> bool:
    """Whether a playbook is likelier than each incident. What is told in words names a symptom more
    often than a cause: there a fair guess at it is enough, if no incident is likely."""
    if not playbooks:
        return False
    best = matches[0].confidence if matches else 0.0
    guessed = in_words and playbooks[0].share >= SYMPTOM_GUESS_AT
    return playbooks[0].confidence > best or (guessed and best < LIKELY_AT)


def first_question(diagnosis: Diagnosis) -> QuestionPlan | None:
    """What to ask first about the candidates; None when no answer would change their order."""
    shares = {match.incident.id: match.confidence for match in diagnosis.candidates}
    incidents = {match.incident.id: match.incident for match in diagnosis.candidates}
    return next_question(Belief.of(shares), incidents, seen_in(diagnosis.evidence))


def to_question(plan: QuestionPlan) -> Question:
    """The question with the answers to pick."""
    return Question(plan.text, (*(option.text for option in plan.options), DONT_KNOW))
