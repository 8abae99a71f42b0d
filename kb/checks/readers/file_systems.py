"""`df`: file systems that are full, by space or by files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.checks.model import Found, Output, Reader

_ROW = re.compile(
    r"(?P<device>\S.{0,200}?)\s+(?P<size>[\d.]+[KMGTP]?i?)\s+[\d.]+[KMGTP]?i?\s+"
    r"(?P<left>-?[\d.]+[KMGTP]?i?)\s+(?P<used>\d{1,3})%\s+(?P<mount>/.*)"
)
_FULL_PERCENT = 98
"""From here on the next checkpoint may not fit."""
_NO_DISK = re.compile(
    r"^/dev/loop|\s(?:squashfs|iso9660|erofs)$|^/snap/|^/sys/firmware/|^/dev/shm$"
)
"""What cannot be written is always full; shared memory has a check of its own."""


def read_df(output: Output) -> Iterator[Found]:
    """The file systems that are full."""
    counts_files = False
    for row, line in enumerate(output.lines):
        if "Inodes" in line.split():  # the header; that of a Chinese `df` has the word as well
            counts_files = True
        elif (cells := _ROW.match(line.strip())) is None:
            counts_files = counts_files and bool(line.strip())
        elif int(cells["used"]) >= _FULL_PERCENT and not _is_no_disk(cells):
            yield _full(cells["mount"], cells["left"], cells["size"], counts_files, row)


def _full(mount: str, left: str, size: str, counts_files: bool, row: int) -> Found:
    if counts_files:
        return Found("full-by-files", f"{mount} is full: {left} of {size} inodes are left.", row)
    return Found("full-by-space", f"{mount} is full: {left} of {size} is left.", row)


def _is_no_disk(cells: re.Match[str]) -> bool:
    return any(map(_NO_DISK.search, (cells["device"], cells["mount"])))


READERS: dict[str, Reader] = {"df-disk-inodes": read_df}
"""By the id of the check."""
