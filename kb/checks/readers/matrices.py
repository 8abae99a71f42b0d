"""Tables with a column for each rank or GPU: what one of them lacks, or does worse."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.checks.model import Found, Output, Reader

_RANKS = re.compile(r"^Rank (\d{1,6})(?:\s{2,}Rank \d{1,6})+\s*$")
_RULE = re.compile(r"-{3,}")
_ROW = re.compile(r"^\s+(\d{1,3})((?:\s+(?:N/A|\d{1,7}\.\d{1,4}))+)\s*$")

_SLOW_SHARE = 0.5
"""Of the best pair of the same matrix."""


def read_recorded_table(output: Output) -> Iterator[Found]:
    """The table of the flight recorder's analyser: a rank whose column ends before the others."""
    for row, line in enumerate(output.lines[:-1]):
        if not _RANKS.match(line):
            continue
        ranks = line.split()[1::2]
        starts = [rule.start() for rule in _RULE.finditer(output.lines[row + 1])]
        if len(starts) != len(ranks):
            continue
        for below, text in enumerate(output.lines[row + 2 :], row + 2):
            cells = [
                text[start:end].strip()
                for start, end in zip(starts, [*starts[1:], None], strict=True)
            ]
            if not any(cells):
                break
            if not all(cells):
                rank = ranks[cells.index("")]
                said = f"Rank {rank} did not issue {next(filter(None, cells))}, which others did."
                yield Found("rank-not-enqueue-operations", said, below)
                return


def read_bandwidths(output: Output) -> Iterator[Found]:
    """The matrices of nvbandwidth: a pair that is far slower than the best one."""
    matrix: list[tuple[float, str, int]] = []
    for row, line in enumerate((*output.lines, "")):
        if found := _ROW.match(line):
            for column, cell in enumerate(found[2].split()):
                if cell != "N/A":
                    matrix.append((float(cell), f"GPU {found[1]} and {column}", row))
        elif matrix:
            best, worst = max(matrix)[0], min(matrix)
            if worst[0] < _SLOW_SHARE * best:
                text = f"{worst[1]} copy at {worst[0]:g} GB/s, the best pair at {best:g}."
                yield Found("slow-pair", text, worst[2])
                return
            matrix = []


READERS: dict[str, Reader] = {
    "flight-recorder-dump": read_recorded_table,
    "nvbandwidth": read_bandwidths,
}
"""By the id of the check."""
