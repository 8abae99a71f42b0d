"""Runs a command that its record marks read-only, after a person has agreed to this very run.

Nothing here asks anybody or shows anything: the faces do. There is no shell.
"""

from kb.run.execute import MAX_BYTES, MAX_SECONDS, Output, end_all, execute
from kb.run.plan import Line, Plan, Program, plan_check, plan_step
from kb.run.policy import why_off

__all__ = [
    "MAX_BYTES",
    "MAX_SECONDS",
    "Line",
    "Output",
    "Plan",
    "Program",
    "end_all",
    "execute",
    "plan_check",
    "plan_step",
    "why_off",
]
