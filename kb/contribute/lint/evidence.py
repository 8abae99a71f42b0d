"""The rule that makes every incident a test: its evidence must find it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from index.encoder import Encoder, model_name
from index.errors import StoreDamaged, StoreError
from index.snapshot import Snapshot
from index.store import Store
from kb.contribute.lint.rule import CheckedFile, Rule
from kb.diagnosis import Diagnosis, diagnose
from kb.documents import digest, from_payload, to_document
from kb.evidence.markers import MARKER_PATTERNS
from kb.incident import Incident, Kind
from kb.knowledge import Knowledge, load_in_background
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
        if not any(file.chosen for file in files):
            return
        encoder = load_in_background(None)
        with Knowledge(_index(files, encoder), encoder) as knowledge:
            for file in files:
                for block in file.incident.body.evidence if file.chosen else ():
                    diagnosis = diagnose(Log.from_text(block), knowledge)
                    if thief := _thief(file, diagnosis):
                        first = block.lstrip("\n").split("\n")[0]
                        yield self.problem(file, first, thief)


STOLEN_EVIDENCE = StolenEvidence()


def accepted_before() -> dict[str, Incident]:
    """The records of the last run by the digest of their file: reading one takes milliseconds,
    and there are hundreds."""
    try:
        with _store().open() as snapshot:
            payloads = snapshot.payloads()
            return {
                digest: from_payload(payloads[name]).incident
                for name, digest in snapshot.digests().items()
            }
    except StoreError:
        return {}


def _store() -> Store:
    """The linter's own, which only saves time: one that cannot be used is made again, or kept in
    memory."""
    return Store(cache_directory() / "lint")


def _index(files: Sequence[CheckedFile], encoder: Callable[[], Encoder]) -> Snapshot:
    """Index the files; what is stored of those that are the same stays."""

    def fill(store: Store) -> Snapshot:
        with store.locked():
            stored = store.digests()
            latest = {file.incident.id: file for file in files}
            same = {
                name for name, file in latest.items() if stored.get(name) == digest(_source(file))
            }
            changed = [
                to_document(file.incident, _source(file))
                for name, file in latest.items()
                if name not in same
            ]
            store.update(
                changed, encoder, model_name(), "", extra_patterns=MARKER_PATTERNS, unchanged=same
            )
            return store.open()

    store = _store()
    try:
        return fill(store)
    except StoreDamaged:
        store.clear()
        return fill(store)
    except StoreError:
        return fill(Store(None))


def _source(file: CheckedFile) -> bytes:
    return "\n".join(file.lines).encode()


def _thief(file: CheckedFile, diagnosis: Diagnosis) -> str | None:
    own = file.incident.id
    if file.incident.kind is not Kind.INCIDENT:
        noted = {note.incident.id for note in diagnosis.notes}
        return None if own in noted else "this evidence is not noticed: no signature fires on it"
    if not diagnosis.matches:
        return "this evidence finds nothing"
    first = diagnosis.matches[0].incident.id
    return None if first == own else f"this evidence finds `{first}` first"
