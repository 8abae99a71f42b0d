"""The rule that makes every incident a test: its evidence must find it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from index.encoder import Encoder, load_encoder, model_name
from index.errors import StoreDamaged, StoreError
from index.snapshot import Snapshot
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
        encoder = load_encoder()
        with Knowledge(_index(files, encoder), lambda: encoder) as knowledge:
            for file in files:
                for block in file.incident.body.evidence if file.chosen else ():
                    diagnosis = diagnose(Log.from_text(block), knowledge)
                    if thief := _thief(file, diagnosis):
                        first = block.lstrip("\n").split("\n")[0]
                        yield self.problem(file, first, thief)


STOLEN_EVIDENCE = StolenEvidence()


def _index(files: Sequence[CheckedFile], encoder: Encoder) -> Snapshot:
    """Index the files in a store of the linter's own, which only saves time: one that cannot be
    used is made again, or kept in memory."""
    documents = {
        file.incident.id: to_document(file.incident, "\n".join(file.lines).encode())
        for file in files
    }

    def fill(store: Store) -> Snapshot:
        with store.locked():
            store.update([*documents.values()], lambda: encoder, model_name(), "")
            return store.open()

    store = Store(cache_directory() / "lint")
    try:
        return fill(store)
    except StoreDamaged:
        store.clear()
        return fill(store)
    except StoreError:
        return fill(Store(None))


def _thief(file: CheckedFile, diagnosis: Diagnosis) -> str | None:
    own = file.incident.id
    if file.incident.kind is not Kind.INCIDENT:
        noted = {note.incident.id for note in diagnosis.notes}
        return None if own in noted else "this evidence is not noticed: no signature fires on it"
    if not diagnosis.matches:
        return "this evidence finds nothing"
    first = diagnosis.matches[0].incident.id
    return None if first == own else f"this evidence finds `{first}` first"
