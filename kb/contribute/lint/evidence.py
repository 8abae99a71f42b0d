"""The rule that makes every incident a test: its evidence must find it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from index.encoder import load_encoder, model_name
from index.store import Store
from kb.contribute.lint.rule import CheckedFile, Rule
from kb.diagnosis import Diagnosis, diagnose
from kb.documents import to_document
from kb.incident import Kind
from kb.knowledge import Knowledge
from kb.locations import cache_directory
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

    def finish(self, files: Sequence[CheckedFile]) -> Iterator[Problem]:
        store = Store(cache_directory() / "lint")
        encoder = load_encoder()
        documents = {
            file.incident.id: to_document(file.incident, "\n".join(file.lines).encode())
            for file in files
        }
        with store.locked():
            store.update([*documents.values()], lambda: encoder, model_name(), "")
            snapshot = store.open()
        with Knowledge(snapshot, lambda: encoder) as knowledge:
            for file in files:
                for block in file.incident.body.evidence:
                    diagnosis = diagnose(Log.from_text(block), knowledge)
                    if thief := _thief(file, diagnosis):
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
