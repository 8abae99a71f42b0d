"""What in a log speaks against a record: other hardware, another Xid or CUDA error, a version after
the fix, an exception that the record does not explain. What is merely unlisted does not.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import msgspec

from index.tokens import tokenize
from kb.corpus.document import Entry, declared_pattern
from kb.evidence import Evidence, Facts, SignatureHit
from kb.evidence.accelerators import Hardware, hardware_of, required_hardware
from kb.evidence.endings import is_told_by_a_person
from kb.evidence.markers import Grade
from kb.evidence.model import Raised
from kb.evidence.reasons import reasons_in
from kb.evidence.systems import versions_in
from kb.job.failures import classify
from kb.job.model import FaultRole
from kb.log.mask import mask
from kb.questions.versions import fits
from kb.rules import any_of, read_rows
from kb.rules.rows import Wrapper

MIN_EXPLAINED = 0.5
"""Share of the words of an exception that one line of a record has, above which they are alike."""

_OWN = (FaultRole.SELF_INFLICTED, FaultRole.EXTERNAL_CAUSE)
"""Roles of an exception that is the failure itself, not what became of another rank's."""


class Stated(msgspec.Struct, frozen=True):
    """What a log states, as it is compared with each record."""

    facts: Facts
    hardware: Hardware
    versions: dict[str, str]
    """By system, as programs print them."""
    absent: frozenset[str]
    """Systems that are not used."""
    reasons: frozenset[str]
    """For which something was refused."""
    exceptions: tuple[tuple[Raised, frozenset[str]], ...]
    """Those that ended processes, each with the words of its message; a name alone tells too
    little."""

    def contradicts(self, entry: Entry, hits: Sequence[SignatureHit]) -> bool:
        """Whether one of the following speaks against the record, whatever speaks for it."""
        return (
            self.other_hardware(entry)
            or self.other_code(entry)
            or self.after_fix(entry)
            or self.lacks_system(entry)
            or self.leaves_unexplained(entry, hits)
        )

    def other_hardware(self, entry: Entry) -> bool:
        """Whether the log names accelerators, and the record only others."""
        needed = required_hardware(entry.incident.header.environment.hardware)
        return self.hardware.excludes(needed)

    def other_code(self, entry: Entry) -> bool:
        """Whether both state Xids or CUDA errors, and none of them is the same."""
        return any(not here & there for here, there in _codes(self.facts, entry.facts))

    def shares_code(self, entry: Entry) -> bool:
        """Whether both state the same Xid or CUDA error."""
        return any(here & there for here, there in _codes(self.facts, entry.facts))

    def other_reason(self, entry: Entry) -> bool:
        """Whether both state why something is refused, and none of the reasons is the same."""
        return bool(self.reasons and entry.reasons) and self.reasons.isdisjoint(entry.reasons)

    def after_fix(self, entry: Entry) -> bool:
        """Whether a version of the log has the fix, or is none that the record is about."""
        return bool(self.versions) and fits(entry.incident, self.versions) is False

    def lacks_system(self, entry: Entry) -> bool:
        """Whether it is said that a system does not run which the record is about."""
        return not self.absent.isdisjoint(entry.incident.header.systems)

    def leaves_unexplained(self, entry: Entry, hits: Iterable[SignatureHit]) -> bool:
        """Whether the log ends in an exception that neither a signature of the record matches nor a
        line of it has most words of. Of several exceptions, one that it explains is enough, and so
        is a signature in a file without any: of a job, that one may be the cause."""
        declared = set(map(declared_pattern, entry.incident.header.signatures))
        files = {raised.line.file for raised, _words in self.exceptions}
        return (
            bool(files)
            and all(hit.line.file in files for hit in hits)
            and not any(
                raised.patterns & declared or _likeness(words, entry.quoted) > MIN_EXPLAINED
                for raised, words in self.exceptions
            )
        )


def stated_in(evidence: Evidence) -> Stated:
    """Read off the evidence what may contradict a record."""
    exceptions = ((one, _words(_first_line(one))) for one in _endings(evidence.raised))
    return Stated(
        facts=evidence.facts,
        hardware=hardware_of(evidence.facts.accelerators),
        versions=_versions_that_ran(evidence) if evidence.facts.versions else {},
        absent=frozenset(evidence.facts.absent_systems),
        reasons=reasons_in(
            "\n".join(line.text for line in evidence.lines if line.grade >= Grade.ERROR)
        ),
        exceptions=tuple((one, words) for one, words in exceptions if len(words) > 1),
    )


def _codes(log: Facts, record: Facts) -> Iterator[tuple[set[int], set[int]]]:
    """The exact codes of each kind that both state."""
    for here, there in ((log.xid, record.xid), (log.cuda_errors, record.cuda_errors)):
        if here and there:
            yield set(here), set(there)


def _versions_that_ran(evidence: Evidence) -> dict[str, str]:
    """As programs print them: people also name a version that works."""
    printed = (line.text for line in evidence.lines if not is_told_by_a_person([line.text]))
    return versions_in("\n".join(printed))


def _words(exception: str) -> frozenset[str]:
    """The name of an exception as one word, and those of its message."""
    name, _colon, message = mask(exception).partition(": ")
    return frozenset([name.rpartition(".")[2].lower(), *tokenize(message)])


def _likeness(words: frozenset[str], lines: Iterable[frozenset[str]]) -> float:
    return max((len(words & line) for line in lines), default=0) / len(words)


def _endings(raised: Sequence[Raised]) -> Iterator[Raised]:
    """What ended each process of itself, with the exceptions that led to it."""
    by_process: dict[tuple[str | None, int | None], list[Raised]] = defaultdict(list)
    for one in raised:
        by_process[one.line.file, one.line.rank].append(one)
    for process in by_process.values():
        yield from _chain([one for one in process if not _wrapper().search(_first_line(one))])


def _chain(own: Sequence[Raised]) -> Iterator[Raised]:
    """The last one, if it is no consequence of another rank, and those that led to it."""
    if not own or not _is_own(own[-1]):
        return
    for one in reversed(own):
        yield one
        if not one.follows:
            return


def _first_line(raised: Raised) -> str:
    return raised.message.partition("\n")[0]


def _is_own(one: Raised) -> bool:
    failure = classify(_first_line(one), Grade.FATAL)
    return failure is not None and failure.role in _OWN


@cache
def _wrapper() -> re.Pattern[str]:
    rows = read_rows("failures", "wrapper", Wrapper)
    return any_of(row.pattern for row in rows)
