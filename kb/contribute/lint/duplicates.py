"""The rule that two records do not tell the same story."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from kb.contribute.lint.checked import CheckedFile
from kb.contribute.lint.context import LintContext
from kb.contribute.lint.rule import Rule
from kb.contribute.todo_marks import MARK
from kb.corpus.document import masked_lines
from kb.problem import Problem

_TITLES, _SYMPTOMS = 0.75, 0.78
"""Cosines above those of any two shipped records that are not told apart by `Distinguish`."""
_SHARED, _FEWEST = 0.75, 3
_MAX_SYMPTOM_CHARACTERS = 600
"""Characters of a symptom that are compared: its first sentences."""


class NearDuplicate(Rule):
    """No two records describe the same incident.

    Two records of one incident compete: each gets about half of the confidence, so neither is shown
    as a match. The message names the other record and what the two share: titles or symptoms with
    the same meaning, or most lines of the evidence.

    Wrong: `our-nccl-hang-march.md` and `our-nccl-hang-april.md`, with the same watchdog lines.

    Right: one record, with the new evidence as a second block and the new words among its
    `aliases`. If the two are different after all, add a question to `## Distinguish` of both;
    then they no longer count as duplicates.
    """

    code = "DUP701"
    help = "merge this record into the other one, or tell the two apart in Distinguish"

    def finish(self, context: LintContext) -> Iterator[Problem]:
        if not context.chosen:
            return
        likeness = _Likeness(context)
        for place, file in enumerate(context.files):
            if not file.chosen:
                continue
            for other, why in likeness.to(place):
                message = (
                    f"this record nearly duplicates `{other.incident.id}`: {why}"
                    f" (`{file.incident.title}` and `{other.incident.title}`)"
                )
                yield self.problem(file, "title:", message)


DUPLICATE_RULES: tuple[Rule, ...] = (NearDuplicate(),)


class _Likeness:
    """How much each record is like each other one."""

    def __init__(self, context: LintContext) -> None:
        self._files = context.files
        encode = context.knowledge.encoder.encode
        titles = [file.incident.title for file in context.files]
        symptoms = [file.incident.body.symptom[:_MAX_SYMPTOM_CHARACTERS] for file in context.files]
        self._titles = encode(titles) * _written(titles)
        self._symptoms = encode(symptoms) * _written(symptoms)
        self._lines = [
            set(masked_lines(file.incident.body.evidence_text)) for file in context.files
        ]

    def to(self, place: int) -> Iterator[tuple[CheckedFile, str]]:
        """Those that a record is too much like, and why."""
        titles = self._titles @ self._titles[place]
        symptoms = self._symptoms @ self._symptoms[place]
        shared = np.array([len(self._lines[place] & lines) for lines in self._lines])
        smaller = np.array([min(len(self._lines[place]), len(lines)) or 1 for lines in self._lines])
        printed = (shared >= _FEWEST) & (shared >= _SHARED * smaller)
        alike = (titles >= _TITLES) | (symptoms >= _SYMPTOMS) | printed
        for number in map(int, np.flatnonzero(alike)):
            other = self._files[number]
            if number == place or _told_apart(self._files[place], other):
                continue
            if printed[number]:
                yield other, f"{shared[number]} evidence lines are the same"
            elif titles[number] >= _TITLES:
                yield other, f"the titles have the same meaning ({titles[number]:.0%})"
            else:
                yield other, f"the symptoms have the same meaning ({symptoms[number]:.0%})"


def _written(texts: Sequence[str]) -> npt.NDArray[np.bool_]:
    """One column. TODO texts are ignored, because they are the same in all drafts."""
    return np.array([[MARK not in text] for text in texts])


def _told_apart(one: CheckedFile, other: CheckedFile) -> bool:
    if one.incident.id == other.incident.id:
        return True  # IDS401 reports duplicate ids
    named = {item.other for item in one.incident.body.distinguish}
    return other.incident.id in named or one.incident.id in {
        item.other for item in other.incident.body.distinguish
    }
