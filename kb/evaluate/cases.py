"""Labelled reports: JSON lines, described in benchmarks/reports/README.md."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

import msgspec

from kb.errors import DamagedError, EvaluationError
from kb.evaluate.expressions import check_expression
from kb.files import decode_json, read_given

AMBIGUOUS = "ambiguous"
"""The kind of a report that has no right answer: it is asked, and counts nowhere."""


UNKNOWN = "?"


class LabelledReport(msgspec.Struct, frozen=True):
    """One report and its label. Further keys of the line are not read."""

    text: str
    """What is pasted."""
    relevant: tuple[str, ...]
    """Ids of the right incidents; empty where nothing known fits; `?` where nobody looked which
    incidents are right, so that only the remedy tells."""
    kind: str
    """`log`, `mixed`, `prose`, `healthy` or `ambiguous`."""
    id: str = ""
    lang: str = "en"
    fix_must_match: str | None = None
    """A regular expression that the fix of a right answer contains, whatever its id."""

    @property
    def is_labelled(self) -> bool:
        """Whether it is said which incidents are right."""
        return self.relevant != (UNKNOWN,)


def read_cases(path: Path, known: Container[str] | None = None) -> list[LabelledReport]:
    """Read a file of labelled reports; where it is said which incidents are `known`, about no
    others: a report of another would count as one that no incident fits.

    Raises:
        EvaluationError: the file cannot be read or holds no report, a line is not such an object,
            or names an incident that is not known.
    """
    try:
        lines = read_given(path).splitlines()
    except OSError as error:
        raise EvaluationError(f"cannot read {path}: {error.strerror or error}") from error
    cases = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                case = decode_json(line, LabelledReport)
                if case.fix_must_match is not None:
                    check_expression(case.fix_must_match)
            except (DamagedError, EvaluationError) as error:
                raise EvaluationError(
                    f"{path}:{number} is not a labelled report: {error}"
                ) from error
            for name in case.relevant:
                if known is not None and name not in known and name != UNKNOWN:
                    raise EvaluationError(
                        f"{path}:{number} names `{name}`, and there is no such incident; correct"
                        " the id, or add its directory with --incidents DIR"
                    )
            cases.append(msgspec.structs.replace(case, id=case.id or f"{path.name}:{number}"))
    if not cases:
        raise EvaluationError(f"{path} holds no labelled reports; it has one JSON object a line")
    return cases
