"""The script: the template beside this module, with the checks in the place of a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kb.check import Risk
from kb.collect.choice import Choice, Left, Taken
from kb.collect.command import tool_of, values_of, with_marks
from kb.log.clean import strip_controls

_END = "END_OF_COMMAND"

_SPARE_SECONDS = 20
"""Added to twice the usual time of a check: on a sick machine all is slower."""
_MAX_SECONDS = 120
"""Nobody waits longer for one check before a restart."""


def to_script(choice: Choice, purpose: str) -> str:
    """The whole script; `purpose` is one line for its reader."""
    template = Path(__file__).with_name("collect.sh").read_text(encoding="utf-8")
    calls = [line for taken in choice.taken for line in _call(taken)]
    calls += [_left(left) for left in choice.left]
    script = template.replace("@PURPOSE@", strip_controls(purpose))
    return script.replace("@CHECKS@", "\n".join(calls))


def _call(taken: Taken) -> Iterator[str]:
    check, command = taken.check, taken.command.run
    header = check.header
    yield f"    # {check.id}: {strip_controls(check.title)}"
    limit = min(_SPARE_SECONDS + 2 * header.cost.seconds, _MAX_SECONDS)
    words = (check.id, str(limit), tool_of(command) or "-", _need(taken), *values_of(command))
    end = _end(command)
    yield f"    check {' '.join(words)} <<'{end}'"
    yield with_marks(command)
    yield end


def _need(taken: Taken) -> str:
    if "root" in taken.check.header.needs:
        return "root"
    return "pause" if taken.check.header.cost.risk is Risk.PAUSES_PROCESS else "-"


def _end(command: str) -> str:
    """A line that the command does not hold."""
    end = _END
    while end in command:
        end += "_"
    return end


def _left(left: Left) -> str:
    reason = f"{left.why.rstrip('.')}; kb show {left.check.id}".replace("'", "'\\''")
    return f"    skip {left.check.id} '{strip_controls(reason)}'"
