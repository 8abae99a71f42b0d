"""Whom a rule names, and what shows it."""

from __future__ import annotations

import msgspec

from kb.job.findings import Finding
from kb.job.kinds import Kind
from kb.job.remark import Remark
from kb.job.report import Saying


class Suspect(msgspec.Struct, frozen=True):
    """A rank or host at fault and the line that shows it."""

    rank: int | None
    host: str | None
    remark: Remark | None
    recorded: tuple[str | None, str] | None = None
    """The file and text of a dump, where no line shows it."""

    @property
    def saying(self) -> Saying:
        """The suspect as the user sees it."""
        if self.remark is not None:
            return saying(self.remark, self.rank, self.host)
        file, text = self.recorded or (None, None)
        return Saying(self.rank, self.host, file, None, None, text)


class Judgement(msgspec.Struct, frozen=True):
    """What a rule comes to."""

    kind: Kind
    suspects: tuple[Suspect, ...]
    finding: Finding


def saying(remark: Remark, rank: int | None, host: str | None) -> Saying:
    """A line as the user sees it."""
    return Saying(rank, host, remark.file, remark.number, remark.time, remark.text.strip())
