"""A belief over records, and what an answer does to it (Bayes' rule)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec


class Topic(StrEnum):
    """What a question is about."""

    OBSERVATION = "observation"
    SYSTEMS = "systems"
    NODES = "nodes"
    HARDWARE = "hardware"
    VERSION = "version"
    EFFECT = "effect"
    """Whether a remedy took effect."""


class Option(msgspec.Struct, frozen=True):
    """One answer to pick, and how likely it is under each record."""

    text: str
    likelihoods: dict[str, float]
    """By id of the record."""
    otherwise: float
    """Under every other record, and when nothing known is the cause."""

    def under(self, identifier: str) -> float:
        """How likely the answer is if this record is the right one."""
        return self.likelihoods.get(identifier, self.otherwise)


class QuestionPlan(msgspec.Struct, frozen=True):
    """A question with its answers. The likelihoods of all options add up to 1 under each record."""

    topic: Topic
    key: str
    """What is asked about; the same thing is not asked twice."""
    text: str
    options: tuple[Option, ...]
    records: tuple[str, ...]
    """Ids of the records in which the question is written, the one that `yes` speaks for first."""


class Belief(msgspec.Struct, frozen=True):
    """Shares of the records and of "nothing known"; they add up to 1."""

    shares: dict[str, float]
    nothing: float

    @classmethod
    def of(cls, shares: Mapping[str, float]) -> Belief:
        """From confidences, which leave the rest to "nothing known"."""
        return cls(dict(shares), max(0.0, 1.0 - sum(shares.values())))

    @property
    def order(self) -> list[str]:
        """Ids, most likely first; the sort is stable."""
        return sorted(self.shares, key=lambda identifier: -self.shares[identifier])

    @property
    def total(self) -> float:
        """All shares together."""
        return self.nothing + sum(self.shares.values())

    def weighed(self, factors: Mapping[str, float], nothing: float) -> Belief:
        """Each share times its factor, made to add up to 1 again."""
        shares = {i: p * factors.get(i, nothing) for i, p in self.shares.items()}
        rest = self.nothing * nothing
        total = sum(shares.values()) + rest
        if not total:
            return self
        return Belief({i: p / total for i, p in shares.items()}, rest / total)

    def narrowed(self, identifiers: Sequence[str]) -> Belief:
        """The belief over some of the records; the others count as "nothing known"."""
        return Belief.of({i: self.shares[i] for i in identifiers})
