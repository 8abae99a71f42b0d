"""Drafts of checks and playbooks: every section is there, and what belongs in it is marked."""

from __future__ import annotations

from kb.check import (
    Check,
    CheckBody,
    CheckHeader,
    Command,
    Cost,
    Finding,
    JobState,
    Limit,
    Place,
    Risk,
)
from kb.contribute.todo_marks import MARK, NO_SYSTEM
from kb.guides import Guide
from kb.incident import Kind
from kb.playbook import (
    AnswerOption,
    Cause,
    CheckStep,
    Mitigation,
    Names,
    Outcome,
    Playbook,
    PlaybookBody,
    PlaybookHeader,
    Question,
    Share,
)

_SOURCE = f"https://{MARK}where-the-facts-come-from"


def blank_guide(kind: Kind, identifier: str) -> Guide:
    """A check or playbook with everything still to be written."""
    return blank_check(identifier) if kind is Kind.CHECK else blank_playbook(identifier)


def blank_check(identifier: str) -> Check:
    """A check with one command, one finding and one limit."""
    header = CheckHeader(
        id=identifier,
        title=f"{MARK} what the command shows, in one line",
        kind=Kind.CHECK,
        area="host",
        systems=(NO_SYSTEM,),
        question=f"{MARK} the one question that its output answers",
        where=f"{MARK} on which machines, and for which processes",
        needs=(f"{MARK} what must hold for it to work, such as root; none at all is fine",),
        cost=Cost(1, Risk.READ_ONLY),
        needs_job=JobState.ANY,
        recognise=(f"{MARK} a pattern by which the output is known",),
        references=(_SOURCE,),
    )
    body = CheckBody(
        commands=(Command(Place.BARE, f"{MARK} the command in a shell on the node"),),
        normal=f"{MARK} lines of a healthy output",
        findings=(
            Finding(
                id="fault",
                means=f"{MARK} what one sees, in a sentence.",
                pattern=f"{MARK} a pattern that finds it in the output",
                suggests=f"{MARK} what it points to",
                then=f"{MARK} what to do next",
                example=f"{MARK} the lines as they are printed",
            ),
        ),
        cannot_see=(Limit(f"{MARK} a fault that leaves no trace in this output"),),
    )
    return Check(header, body)


def blank_playbook(identifier: str) -> Playbook:
    """A playbook with one of everything."""
    header = PlaybookHeader(
        id=identifier,
        title=f"{MARK} the symptom, in one line",
        kind=Kind.PLAYBOOK,
        names=Names(
            en=(f"{MARK} how people say it, in two to six words; five or more",),
            zh=(f"{MARK} the same in Chinese",),
        ),
        references=(_SOURCE,),
    )
    body = PlaybookBody(
        secure=(f"{MARK} what a restart destroys",),
        safe_to_wait=f"{MARK} whether the job can wait, and whether waiting has any use",
        ask=(
            Question(
                f"{MARK} a question that only the user can answer",
                (AnswerOption(f"{MARK} an answer", ("first-cause",)),),
            ),
        ),
        checks=(
            CheckStep(
                "py-spy-dump",
                f"{MARK} why this check comes first; the heading is its id",
                (Outcome(f"{MARK} what it can show", "cause:first-cause"),),
            ),
        ),
        causes=(
            Cause(
                key="first-cause",
                cause=f"{MARK} the cause, in a sentence",
                share=Share.SOMETIMES,
                tell=f"{MARK} what shows that it is this one",
                remedy=f"{MARK} what removes it",
            ),
        ),
        tonight=(
            Mitigation(f"{MARK} what gets the job going", f"{MARK} its cost", f"{MARK} its risk"),
        ),
        escalate=(f"{MARK} what the next expert will ask for",),
    )
    return Playbook(header, body)
