"""The outcome of one unit, and its output row."""

from __future__ import annotations

from datetime import datetime

import msgspec

from kb.classify.moment import moment_of
from kb.diagnosis import By, Diagnosis, Why
from kb.evidence import EvidenceLine
from kb.evidence.markers import Grade
from kb.evidence.secrets import mask_secrets
from kb.log.clean import decode_path
from kb.log.prefixes import split_prefix
from kb.verdict import Verdict


class MainLine(msgspec.Struct, frozen=True):
    """The line that tells most about a unit."""

    file: str | None
    line: int | None
    text: str
    rank: int | None = None
    host: str | None = None
    moment: datetime | None = None
    """When it was printed, if the log tells; of a line that was read back, only what it says."""


class ResultRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One object of the JSONL output, one line of the CSV: a contract, in this order."""

    path: str
    verdict: Verdict
    incident: str | None
    confidence: float | None
    file: str | None
    line: int | None
    text: str | None
    cluster: str | None = None


class Result(msgspec.Struct, frozen=True):
    """The part of a diagnosis that is kept: small, so that 100,000 fit in memory."""

    path: str
    verdict: Verdict
    incident: str | None
    confidence: float | None
    main_line: MainLine | None
    cluster: str | None = None
    """Groups the units whose verdict is `unknown`."""
    notices: tuple[str, ...] = ()
    """What the user should know about the input itself."""

    @classmethod
    def of(cls, path: str, diagnosis: Diagnosis) -> Result:
        """Keep what matters of a diagnosis."""
        best = diagnosis.matches[0] if diagnosis.matches else None
        return cls(
            path=decode_path(path),
            verdict=diagnosis.verdict,
            incident=best.incident.id if best else None,
            confidence=best.confidence if best else None,
            main_line=_dated(main_line_of(diagnosis), diagnosis),
            notices=diagnosis.notices,
        )

    @classmethod
    def from_row(cls, row: ResultRow) -> Result:
        """Read a row back; rank and host are parsed from its text again."""
        main_line = None
        if row.text is not None:
            spoken = split_prefix(row.text)
            main_line = MainLine(row.file, row.line, row.text, spoken.rank, spoken.host)
        return cls(row.path, row.verdict, row.incident, row.confidence, main_line)

    def row(self) -> ResultRow:
        """The row that is written."""
        main_line = self.main_line
        return ResultRow(
            path=self.path,
            verdict=self.verdict,
            incident=self.incident,
            confidence=self.confidence,
            file=main_line.file if main_line else None,
            line=main_line.line if main_line else None,
            text=main_line.text if main_line else None,
            cluster=self.cluster,
        )


class Unreadable(msgspec.Struct, frozen=True):
    """A unit that gives no result, and why in one sentence."""

    path: str
    reason: str


Outcome = Result | Unreadable


def _dated(line: MainLine | None, diagnosis: Diagnosis) -> MainLine | None:
    if line is None:
        return None
    return msgspec.structs.replace(line, moment=moment_of(diagnosis, line.file, line.line))


def main_line_of(diagnosis: Diagnosis) -> MainLine | None:
    """The line to show for a unit: the first failure of a job, otherwise the most informative line
    that supports the best match, otherwise one that shows an error. Secrets are masked, because
    results are passed on to others."""
    job = diagnosis.job
    if job and job.failed and job.culprits and job.culprits[0].text:
        first = job.culprits[0]
        text = mask_secrets(first.text or "")
        return MainLine(first.file, first.line, text, first.rank, first.host)
    if diagnosis.matches:
        return _main_line(max(diagnosis.matches[0].why, key=_weight).line)
    telling = (line for line in diagnosis.evidence.lines if line.grade >= Grade.ERROR)
    return next(map(_main_line, telling), None)


def _weight(why: Why) -> tuple[bool, Grade]:
    return why.by is By.SIGNATURE, why.line.grade


def _main_line(line: EvidenceLine) -> MainLine:
    text = mask_secrets(line.text.strip())
    return MainLine(line.file, line.number, text, line.rank, line.host)
