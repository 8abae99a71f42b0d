"""What a diagnosis comes to where no incident leads, in the same words on every face."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kb.diagnosis.causes import cause_pointed_to, likeliest_causes
from kb.diagnosis.model import Diagnosis
from kb.outcome import Outcome
from kb.playbook import Cause, Playbook
from kb.verdict import SYMPTOM_AT, Verdict

MAX_CAUSES_SHOWN = 3
"""Of a symptom; at night nobody tries a fourth before a check has told."""
_EMPTY = "The input is empty."
_HEALTHY = "The log shows no failure, and says at its end that the work is done."
_SLOW = " The job is slow, but it did not fail."
_FOLLOW_ON = (
    "Only follow-on errors. Look for the original failure: in an earlier line, or in the log of"
    " another rank or host."
)
_NO_FAILURE = "No line shows a failure, and none shows that the work is done."
_DESCRIBE = " If it hangs or is slow, say so: since when, at which step, and what the GPUs do."
_SYMPTOM = "The symptom is known, its cause is not."
_POINTED = "The symptom is known, and the input points to its cause."
_GUESS = (
    "Nothing known matches, and the symptom is a guess. Add the first error of all ranks, with the"
    " lines before it."
)
_GUESS_AND_CAUSES = (
    "The symptom is a guess, and no cause is likely yet. Add the first error of all ranks, with the"
    " lines before it."
)
_NOTHING = (
    "Nothing known matches. Add the first error of all ranks, with the lines before it, the"
    " versions and the launch command."
)
_NOTHING_SAID = (
    "Nothing known matches. Say what you see (it hangs, crashes or is slow) and since when, or"
    " paste the first error."
)


def without_incident(diagnosis: Diagnosis) -> str:
    """A sentence or two; what a playbook advises comes after it."""
    evidence = diagnosis.evidence
    if diagnosis.verdict is Verdict.HEALTHY:
        job = diagnosis.job
        return f"{_HEALTHY}{_SLOW if job and job.culprits else ''}"
    if not evidence.total_lines:
        return _EMPTY
    if diagnosis.verdict is Verdict.POSSIBLE and not diagnosis.matches:
        return _FOLLOW_ON
    if evidence.is_log and not evidence.states_failure:
        return f"{_NO_FAILURE}{'' if diagnosis.playbooks else _DESCRIBE}"
    if diagnosis.playbooks:
        if diagnosis.playbooks[0].share >= SYMPTOM_AT:
            return _POINTED if points_to_cause(diagnosis) else _SYMPTOM
        return _GUESS_AND_CAUSES if diagnosis.matches else _GUESS
    return _NOTHING if evidence.states_failure else _NOTHING_SAID


def collecting(playbook: Playbook) -> str:
    """The command that writes the script of the checks of a playbook."""
    return f"kb collect --for {playbook.id} > collect.sh"


def points_to_cause(diagnosis: Diagnosis) -> bool:
    """Whether the input points to a cause of the leading symptom."""
    return _cause_of_symptom(diagnosis) is not None


def cause_pointed(diagnosis: Diagnosis) -> str:
    """The cause of the leading symptom to which the input points, and its remedy; empty without
    one."""
    cause = _cause_of_symptom(diagnosis)
    return _with_remedy("The input points to one cause", cause) if cause else ""


def _cause_of_symptom(diagnosis: Diagnosis) -> Cause | None:
    found = cause_pointed_to(diagnosis.playbooks[:1], diagnosis.matches, diagnosis.pointed)
    return found[1] if found else None


def likely_causes(diagnosis: Diagnosis) -> Iterator[str]:
    """A line for each of the likeliest causes of the leading symptom: how it is told, and the
    remedy."""
    for match in diagnosis.playbooks[:1]:
        causes = likeliest_causes(match.playbook, diagnosis.matches, diagnosis.pointed)
        for cause in causes[:MAX_CAUSES_SHOWN]:
            yield _with_remedy(cause.tell[:1].upper() + cause.tell[1:], cause)


def _with_remedy(said: str, cause: Cause) -> str:
    return f"{said}: {cause.cause.rstrip('.')}. Remedy: {cause.remedy.rstrip('.')}."


def ended_before(diagnosis: Diagnosis, earlier: Iterable[Outcome]) -> Outcome | None:
    """How the same incident or symptom ended the last time; `earlier` is newest first."""
    leading = {match.incident.id for match in diagnosis.matches[:1]}
    leading |= {match.playbook.id for match in diagnosis.playbooks[:1]}
    return next((outcome for outcome in earlier if outcome.record in leading), None)
