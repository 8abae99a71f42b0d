"""The rule that makes every incident a test: its evidence must find it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from index.documents import Pattern
from kb.contribute.lint.checked import CheckedFile
from kb.contribute.lint.context import LintContext
from kb.contribute.lint.rule import Rule
from kb.diagnosis import Diagnosis, Match
from kb.incident import Kind
from kb.problem import Problem

_MAX_FILES_ASKED = 20
"""Number of chosen files whose neighbours are looked for; it bounds the seconds of a check."""
_MAX_NEIGHBOURS = 10
"""Number of records taken from one answer: those whose evidence a new record could win."""


class StolenEvidence(Rule):
    """Each evidence block ranks its own incident first.

    Every record is a test: its evidence is searched like a user's log. If another record ranks
    higher, a user with this log gets the wrong fix. Either the evidence lacks the lines that tell
    the two apart, or this record lacks a signature, or the other record's signatures are too broad.
    Evidence of a follow-on error or of known noise must be recognised as such.

    Wrong: evidence with only lines that any job prints.

    ```text
    RuntimeError: CUDA error: unknown error
    ```

    Right: with the line that only this cause prints, and a signature for it.

    ```text
    NVRM: Xid (PCI:0000:1b:00): 79, pid=4711, GPU has fallen off the bus.
    RuntimeError: CUDA error: unknown error
    ```
    """

    code = "EVD301"
    help = "add distinctive lines or a signature, or make the other record's signatures weak"

    def finish(self, context: LintContext) -> Iterator[Problem]:
        blocks = [
            (file, block.text) for file in context.chosen for block in file.incident.body.evidence
        ]
        context.encode_ahead([block for _file, block in blocks])
        for file, block in blocks:
            diagnosis = context.diagnose(file, block)
            if diagnosis and (found := _misfound(file, diagnosis)):
                first = block.lstrip("\n").split("\n")[0]
                yield self.problem(file, first, found)


class StealsEvidence(Rule):
    """A record does not outrank another record on that record's evidence.

    The counterpart of EVD301 for a check of single files: the evidence of the most similar records
    is searched again with this record in the index.

    Wrong: a new record with `pattern: Watchdog caught collective operation timeout`, `strength:
    strong`; it now wins the logs of every hang.

    Right: keep only patterns that no other incident prints as strong; make the rest weak or remove
    them.
    """

    code = "EVD302"
    help = "make the signatures that match it weak or more specific, or remove aliases"

    def finish(self, context: LintContext) -> Iterator[Problem]:
        chosen = {file.incident.id: file for file in context.chosen}
        for other in _alike(context) if len(chosen) < len(context.files) else ():
            for block in other.incident.body.evidence:
                diagnosis = context.diagnose(other, block.text)
                matches = diagnosis.matches if diagnosis else ()
                thief = chosen.get(matches[0].incident.id) if matches else None
                is_behind = bool(matches) and _share_of(other, matches) < matches[0].confidence
                if thief and is_behind and other.incident.kind is Kind.INCIDENT:
                    message = f"the evidence of `{other.incident.id}` ranks this record first"
                    yield self.problem(thief, "signatures:", message)
                    break


def _share_of(file: CheckedFile, matches: Sequence[Match]) -> float:
    """The confidence of a record; 0 where it is not among the matches. At the same confidence,
    such as that of a cap, none is outranked."""
    own = (match.confidence for match in matches if match.incident.id == file.incident.id)
    return next(own, 0.0)


EVIDENCE_RULES: tuple[Rule, ...] = (StolenEvidence(), StealsEvidence())


def _alike(context: LintContext) -> list[CheckedFile]:
    """Those that the user did not ask about, and that come up with what the chosen ones hold."""
    found = {
        match.incident.id
        for file in context.chosen[:_MAX_FILES_ASKED]
        for text in (file.incident.body.evidence_text, file.incident.body.symptom)
        if (diagnosis := context.diagnose(file, text))
        for match in diagnosis.candidates[:_MAX_NEIGHBOURS]
    }
    own = {
        Pattern(signature.pattern, signature.regex)
        for file in context.chosen
        for signature in file.incident.header.signatures
    }
    return [
        file
        for file in context.files
        if not file.chosen
        and (file.incident.id in found or own & context.fired(file.incident.body.evidence_text))
    ]


def _misfound(file: CheckedFile, diagnosis: Diagnosis) -> str | None:
    own = file.incident.id
    if file.incident.kind is not Kind.INCIDENT:
        noted = {note.incident.id for note in diagnosis.notes}
        return None if own in noted else "this evidence is not recognised: no signature matches it"
    if not diagnosis.matches:
        return "this evidence finds no record"
    first = diagnosis.matches[0].incident.id
    return None if first == own else f"this evidence ranks `{first}` first"
