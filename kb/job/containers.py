"""The containers whose logs stand in one file, as `yarn logs` prints those of an application.

Each is a program of its own: a part of the file stands for the file that it was on its host. What
YARN writes around it, nobody said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from kb.expression import Expression
from kb.job.lines import Line

_OPENS = Expression(
    r"Container: (?P<container>container_\w{1,80}) on (?P<host>[\w.-]{1,200}?)(?:[_:]\d{1,5})?\s*$"
)
_SAYS = Expression(r"Log ?Contents:\s*$")
"""Behind it stands what the program said, up to the end of the log."""
_ENDS = Expression(r"End of LogType:")


def split_containers(files: Mapping[str, Sequence[Line]]) -> dict[str, dict[str, Sequence[Line]]]:
    """By file: its parts, each with a name as if it lay in a directory of its host; a file that
    holds no containers is its own part."""
    return {name: _containers(name, lines) or {name: lines} for name, lines in files.items()}


def _containers(name: str, lines: Sequence[Line]) -> dict[str, Sequence[Line]]:
    if not any(_OPENS.match(line.text) for line in lines):
        return {}
    parts: dict[str, list[Line]] = defaultdict(list)
    for part, line in _said(name, lines):
        parts[part].append(line)
    return dict(parts)


def _said(name: str, lines: Sequence[Line]) -> Iterator[tuple[str, Line]]:
    """What programs said, each line with the part to which it belongs: the file itself, where lines
    in front of it were not kept, so that it could be of any container."""
    part, says, number = name, True, 0
    for line in lines:
        if line.number > number + 1:
            part, says = name, True
        number = line.number
        if opens := _OPENS.match(line.text):
            part, says = f"{opens['host']}/{opens['container']}", False
        elif _SAYS.match(line.text):
            says = True
        elif _ENDS.match(line.text):
            says = False
        elif says:
            yield part, line
