"""The features of one candidate, and how they enter the score.

The rows of confidence.toml are the one ordered table of features: name, weight, and the range that
counts. `Features` holds their raw values under the same names; loading checks that both agree.
"""

from __future__ import annotations

import math
import tomllib
from functools import cache
from pathlib import Path

import msgspec


class Features(msgspec.Struct, frozen=True):
    """The raw features for and against one candidate. None is negative."""

    strong_signatures: float = 0.0
    """Strong signatures seen, each divided by the number of records that have it."""
    weak_signatures: float = 0.0
    """Weak signatures seen, likewise."""
    coverage: float = 0.0
    """Share of the query's words, weighted by rarity, that the record contains. 0 to 1."""
    shared_idf: float = 0.0
    """Weight of all the query's words that the record has (1 = one rare word)."""
    best_line_idf: float = 0.0
    """Weight of the words of the query's best line that the record has (1 = one rare word)."""
    cosine: float = 0.0
    """Cosine of the nearest passages. 0 to 1."""
    shared_systems: float = 0.0
    """Weight by rarity of the systems that log and record share (1 = of this record alone)."""
    log_lines: float = 0.0
    """log(1 + distinct lines that were searched): many lines share words with anything."""
    no_failure_seen: float = 0.0
    """1 if no line of a log shows a failure. Many hangs print none, but most such logs are
    healthy."""
    progress_without_failure: float = 0.0
    """1 if, in addition, the work continues to the end of the log."""
    shared_code: float = 0.0
    """1 when the log states an exact code that the record's evidence states as well."""
    other_code: float = 0.0
    """1 when an exact code in the log differs from the record's: error 802 is not error 803."""
    other_reason: float = 0.0
    """1 when something is refused for another reason than where the record happens: a full disk is
    no missing permission. A strong signature speaks for itself."""
    unexplained_exception: float = 0.0
    """1 when the log ends in an exception that the record does not explain; a strong signature
    explains it, wherever it stands."""
    other_hardware: float = 0.0
    """1 when the log names accelerators, and the record only others."""
    after_fix: float = 0.0
    """1 when a version in the log has the fix, or is not of those that the record is about."""
    absent_system: float = 0.0
    """1 when a system that the record is about is said not to be used."""
    other_symptom: float = 0.0
    """How surely the symptom told in words is none of those of the record. 0 to 1."""


class PlaybookFeatures(msgspec.Struct, frozen=True):
    """The raw features for a playbook. None is negative."""

    lines: float = 0.0
    """Lines of its symptom that are there, each divided by the number of playbooks that have it.
    0 to 1: many lines of one failure say no more than one does."""
    named: float = 0.0
    """Largest share of words, weighted by rarity, that a line or sentence and a name have in
    common. 0 to 1."""
    contained: float = 0.0
    """Weight of the words of a name that are in one sentence, less that of those that are not
    (1 = one rare word). 0 to 3."""
    coverage: float = 0.0
    """Share of the query's words, weighted by rarity, that the playbook contains. 0 to 1."""
    cosine: float = 0.0
    """Cosine of the nearest of its names. 0 to 1."""
    linked: float = 0.0
    """Confidence of the incidents where its symptom is seen. 0 to 1."""


class FeatureRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How one feature enters the score: as `weight * value`."""

    name: str
    weight: float
    """At least 0; at most 0 for a feature `against` the candidate."""
    foreign: float = 0.0
    """The raw value that unrelated text reaches too; values below it count as 0."""
    most: float = math.inf
    """The raw value above which the feature saturates."""
    unit: float = 1.0
    """The raw difference that counts as 1."""
    half_at_idf: float = 0.0
    """The value is halved at this weight of shared words: two or three words say little, even
    if they are all words of the query."""
    against: bool = False
    reason: str = ""
    """Of a weight that is stated and not fitted, because few reports have the feature."""

    def value(self, features: Features) -> float:
        """The feature as the score sees it; never negative."""
        raw: float = getattr(features, self.name)
        value = max(0.0, min(raw, self.most) - self.foreign) / self.unit
        if not value or not self.half_at_idf:
            return value
        return value * features.shared_idf / (features.shared_idf + self.half_at_idf)


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table of features and the calibration; confidence.toml holds the shipped one."""

    command: str
    """What fitted it."""
    slope: float
    offset: float
    """Of the calibration, in log odds."""
    top: float
    """The share of right answers among the surest, 0 to 1: other causes print the same lines."""
    covered: float
    """The share of failures with a known incident among those of the calibration, 0 to 1."""
    bias: float
    """The score of a candidate without any evidence."""
    feature: tuple[FeatureRow, ...]

    def __post_init__(self) -> None:
        names = tuple(row.name for row in self.feature)
        if names != Features.__struct_fields__:
            raise ValueError(f"the rows {names} are not the features {Features.__struct_fields__}")

    def values(self, features: Features) -> tuple[float, ...]:
        """All features as the score sees them, in the order of the table."""
        return tuple(row.value(features) for row in self.feature)


@cache
def load_model() -> Model:
    """Read the shipped table."""
    text = Path(__file__).with_name("confidence.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Model)
