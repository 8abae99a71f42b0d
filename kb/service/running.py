"""What is run of a task, for every face that may run it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb.run import MAX_SECONDS, Plan, plan_check, plan_step

if TYPE_CHECKING:
    from kb.conversation.next_step import Task


def plan_of(task: Task) -> Plan:
    """How a task is run here.

    Raises:
        RunError: it is not run.
    """
    from kb.diagnosis import NextCheck

    if isinstance(task, NextCheck):
        return plan_check(task.check, task.command)
    return plan_step(task.step)


def terms() -> str:
    """What holds for every run, in a sentence."""
    return (
        f"It runs on this machine as you, without a shell and without input, for {MAX_SECONDS} s"
        " at most."
    )
