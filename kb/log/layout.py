"""Who wrote a file, told from its path. Adding a launcher's layout is adding a row.

A name that no row knows is a file like any other; then its lines tell who speaks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec


class Origin(msgspec.Struct, frozen=True):
    """What a path says about who wrote the file."""

    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    attempt: int | None = None


_EDGE = r"(?=[/._-]|$)"
_TEXT = r"(?:\.(?:log|out|err|txt|stdout|stderr))?$"

RANKS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # torchrun --log-dir, with or without the run id
        r"attempt_(?P<attempt>\d+)/(?P<local_rank>\d+)/std(?:out|err)(?:\.log)?$",
        # mpirun --output-filename
        r"(?:^|/)rank\.(?P<rank>\d+)/std(?:out|err)$",
        r"(?:^|[/._-])local[-_.]?rank[-_.=]?(?P<local_rank>\d+)" + _EDGE,
        r"(?:^|[/._-])(?:global[-_.]?)?(?:rank|task|proc(?:ess)?|pe)[-_.=]?(?P<rank>\d+)" + _EDGE,
        r"(?:^|[/._-])[rp](?P<rank>\d+)" + _EDGE,
        # Slurm %j_%t and %j-%t
        r"(?:^|/)(?:[a-z]\w*?[-_.])?\d{2,}[_.-](?P<rank>\d+)\.(?:out|err|log|txt)$",
        r"(?:^|[/._-])(?:worker|trainer)[-_.]?(?P<rank>\d{1,3})" + _TEXT,
        r"(?:^|[/._-])gpu[-_.]?(?P<rank>\d)" + _TEXT,
        r"(?:^|/)(?P<rank>\d{1,5})" + _TEXT,
        r"(?:^|/)(?P<rank>\d{1,5})/std(?:out|err)(?:\.log)?$",
        r"(?:^|/)(?:log|logs|out|output|std(?:out|err)|train|run)[-_.](?P<rank>\d{1,5})" + _TEXT,
    )
)
"""Tried in this order."""

HOSTS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?:^|[/._])(?P<host>(?:ip|ec2)-\d+-\d+-\d+-\d+[\w-]*)",
        r"(?:^|[/._@-])(?P<host>(?:[a-z]+-)*?(?:node|host|nid|cn|dgx|hgx|compute|gke|pod|srv|server"
        r"|machine|hpc|rack\w*?|a100|h100|h200|b200|v100)[-_]?[a-z]{0,2}\d*[\w-]*?)"
        + r"(?=[/._]|$)",
        r"(?:^|/)(?P<host>[a-z][a-z0-9-]*?\d[a-z0-9-]*)(?:\.[a-z][\w-]*)*/",
        r"(?:^|/)(?P<host>gpu-?\d{2,}[a-z0-9-]*)" + _EDGE,
    )
)

_NUMBER, _LETTER = re.compile(r"\d+"), re.compile(r"(?<![A-Za-z])[a-z](?![A-Za-z])")
_COMPRESSED = re.compile(r"\.(?:gz|zst)$", re.IGNORECASE)
_NO_HOST = re.compile(
    r"(?:attempt|rank|task|proc|worker|job|run|epoch|step|log|gpu)[-_.]?\d?", re.IGNORECASE
)
_SYSTEM = re.compile(
    r"(?:dmesg|kern(?:el)?|journal(?:ctl)?|syslog|ip[-_. ]?(?:link[-_. ]?)?mon(?:itor)?"
    r"|nvidia[-_]smi|dcgm|sacct|scontrol|squeue|py-?spy|launcher|torchrun|mpirun)[-_.]?",
    re.IGNORECASE,
)


def origin_of(path: str) -> Origin:
    """Read a path relative to the directory of the job."""
    path = _COMPRESSED.sub("", path)
    found: dict[str, str] = {}
    for pattern in RANKS:
        match = pattern.search(path)
        if match:
            found = {name: value for name, value in match.groupdict().items() if value}
            break
    return Origin(
        rank=_number(found.get("rank")),
        local_rank=_number(found.get("local_rank")),
        host=_host(path),
        attempt=_number(found.get("attempt")),
    )


def is_system_log(path: str) -> bool:
    """Whether a file is what a machine said, not a program: its everyday lines tell nothing."""
    return _SYSTEM.search(path) is not None


def number_siblings(names: Sequence[str]) -> dict[str, int]:
    """Files whose names differ in one small number alone: it is the rank, where nothing else is."""
    groups: dict[str, dict[str, int]] = {}
    for name in names:
        bare = _COMPRESSED.sub("", name)
        for match in _NUMBER.finditer(bare):
            shape = _LETTER.sub("*", f"{bare[: match.start()]}#{bare[match.end() :]}")
            groups.setdefault(shape, {})[name] = int(match[0])
    return {
        name: number
        for group in groups.values()
        if len(group) > 1 and max(group.values()) < 2 * len(group)
        for name, number in group.items()
    }


def _host(path: str) -> str | None:
    for pattern in HOSTS:
        for match in pattern.finditer(_SYSTEM.sub("", path)):
            if not _NO_HOST.fullmatch(match["host"]):
                return match["host"]
    return None


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
