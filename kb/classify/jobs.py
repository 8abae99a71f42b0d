"""Files that look like the logs of one job, from the ranks or hosts that their names tell."""

from __future__ import annotations

import glob
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from kb.log.layout import origin_of


def suggest_jobs(arguments: Sequence[str], files: Iterable[str]) -> str | None:
    """The path or pattern that names each job, where files below the only argument are those of
    several ranks or hosts each; None where none are."""
    if len(arguments) != 1 or not os.path.isdir(arguments[0]):  # noqa: PTH112  Path raises on a name that is too long
        return None
    base = PurePath(arguments[0])
    speakers: dict[PurePath, set[int | str]] = defaultdict(set)
    for file in map(PurePath, files):
        origin = origin_of(str(file.relative_to(base)))
        who = origin.host if origin.rank is None else origin.rank
        if who is not None:
            speakers[_job(base, file)].add(who)
    jobs = [job for job, seen in speakers.items() if len(seen) > 1]
    if not jobs:
        return None
    return str(base) if jobs == [base] else f"{glob.escape(str(base))}/*"


def _job(base: PurePath, file: PurePath) -> PurePath:
    """The directory right below the base; a file that lies in the base itself is of its job."""
    first, *inside = file.relative_to(base).parts
    return base / first if inside else base
