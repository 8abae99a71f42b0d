"""What is said about a log that grows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Self

import msgspec

from kb.classify.result import MainLine, main_line_of
from kb.diagnosis import By, Diagnosis
from kb.evidence.markers import Grade
from kb.log.layout import origin_of
from kb.log.mask import mask
from kb.verdict import Verdict


class Event(msgspec.Struct, frozen=True):
    """An incident, a failure that nothing known fits, or a good end: an object of the JSONL output,
    in this order. Secrets are masked."""

    time: str
    """When it was seen, in UTC."""
    path: str
    """The log, or the directory of the job."""
    verdict: Verdict
    incident: str | None
    title: str | None
    confidence: float | None
    rank: int | None
    host: str | None
    file: str | None
    """Below `path`, where that is a directory."""
    line: int | None
    text: str | None

    @classmethod
    def of(cls, path: str, diagnosis: Diagnosis, *, of_several: bool) -> Self:
        """What a diagnosis comes to. `of_several` files, the name of one may tell its rank."""
        best = diagnosis.matches[0] if diagnosis.matches else None
        line = main_line_of(diagnosis) or MainLine(None, None, "")
        rank = line.rank
        if rank is None and of_several and line.file:
            rank = origin_of(line.file).rank
        return cls(
            time=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            path=path,
            verdict=diagnosis.verdict,
            incident=best.incident.id if best else None,
            title=best.incident.title if best else None,
            confidence=best.confidence if best else None,
            rank=rank,
            host=line.host,
            file=line.file,
            line=line.line,
            text=line.text or None,
        )

    @property
    def kind(self) -> str:
        """Equal for two that need not both be said."""
        return self.incident or mask(self.text or "")

    @property
    def is_failure(self) -> bool:
        """Whether somebody should be woken."""
        return self.verdict is not Verdict.HEALTHY


def is_news(diagnosis: Diagnosis) -> bool:
    """Whether somebody should hear of it. What a log complains of in passing, and no record
    declares, is nobody's business."""
    match diagnosis.verdict:
        case Verdict.MATCH:
            return True
        case Verdict.POSSIBLE:
            return _is_fatal(diagnosis) or _is_declared(diagnosis)
        case Verdict.UNKNOWN:
            return _is_fatal(diagnosis)
        case Verdict.HEALTHY:
            return False


def _is_fatal(diagnosis: Diagnosis) -> bool:
    job = diagnosis.job
    fatal = any(line.grade is Grade.FATAL for line in diagnosis.evidence.lines)
    return fatal or (job is not None and job.failed)


def _is_declared(diagnosis: Diagnosis) -> bool:
    """Whether a line that the first record declares is in the log."""
    return any(why.by is By.SIGNATURE for match in diagnosis.matches[:1] for why in match.why)
