"""Writes into a record when its claims were compared with which release."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from kb.contribute.verify.clone import Clone
from kb.contribute.verify.findings import Finding, Standing, sources_of
from kb.files import write_whole
from kb.incident import Checked, Incident
from kb.markdown import read, render

_BY = "kb verify"


def note_down(path: Path, findings: Sequence[Finding], clone: Clone) -> bool:
    """Note the look under `checked`; a record with a wrong claim is left alone, so that nobody
    takes it for verified.

    Raises:
        IncidentError: the file is no record any more.
        OutputError: it cannot be written.
    """
    record = read(path)
    if not isinstance(record, Incident) or any(one.standing is Standing.WRONG for one in findings):
        return False
    header = record.header
    before = header.checked
    others = [one for one in (before.sources if before else ()) if one.name != clone.name]
    checked = Checked(
        date=datetime.now(UTC).date(),
        by=before.by if before else _BY,
        sources=(*others, sources_of(findings, clone)),
    )
    changed = msgspec.structs.replace(header, checked=checked)
    write_whole(path, render(msgspec.structs.replace(record, header=changed)).encode())
    return True
