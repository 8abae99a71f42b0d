"""The rule that makes every incident a test: its evidence must find it."""

from __future__ import annotations

from collections.abc import Iterator

from kb.contribute.lint.checked import CheckedFile
from kb.contribute.lint.corpus import Corpus
from kb.contribute.lint.rule import Rule
from kb.diagnosis import Diagnosis, diagnose
from kb.incident import Kind
from kb.log import Log
from kb.problem import Problem


class StolenEvidence(Rule):
    """A block of evidence must bring its own incident to position 1.

    When another record, the thief, ranks higher, a user with this log is sent to the wrong fix.
    Either the evidence lacks the lines that tell the two apart, or the record lacks the signature,
    or the thief claims too much. Evidence of a follow-on error or of known noise must be noticed
    as such.
    """

    code = "EVD301"
    help = "add the telling lines or a signature, or make the thief's signatures weak"

    def finish(self, corpus: Corpus) -> Iterator[Problem]:
        blocks = [(file, block) for file in corpus.chosen for block in file.incident.body.evidence]
        if not blocks:
            return
        corpus.encode_ahead([block for _file, block in blocks])
        for file, block in blocks:
            if thief := _thief(file, diagnose(Log.from_text(block), corpus.knowledge)):
                first = block.lstrip("\n").split("\n")[0]
                yield self.problem(file, first, thief)


STOLEN_EVIDENCE = StolenEvidence()


def _thief(file: CheckedFile, diagnosis: Diagnosis) -> str | None:
    own = file.incident.id
    if file.incident.kind is not Kind.INCIDENT:
        noted = {note.incident.id for note in diagnosis.notes}
        return None if own in noted else "this evidence is not noticed: no signature fires on it"
    if not diagnosis.matches:
        return "this evidence finds nothing"
    first = diagnosis.matches[0].incident.id
    return None if first == own else f"this evidence finds `{first}` first"
