"""`df`, `quota`: file systems that are full, by space or by files, and limits of users."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.checks.model import Found, Output, Reader
from kb.checks.readers.sizes import read_size

_ROW = re.compile(
    r"(?P<device>\S.{0,200}?)\s+(?P<size>[\d.]+[KMGTP]?i?)\s+[\d.]+[KMGTP]?i?\s+"
    r"(?P<left>-?[\d.]+[KMGTP]?i?)\s+(?P<used>\d{1,3})%\s+(?P<mount>/.*)"
)
_FULL_PERCENT = 98
"""From here on the next checkpoint may not fit."""
_NEARLY_FULL_PERCENT = 90
"""Of a file system in memory, which is small: a tenth of it is less than one layer of an image."""
_IN_MEMORY = re.compile(r"(?:tmpfs|ramfs|none)\b")
_QUOTA_HEADER = re.compile(
    r"^\s*Filesystem\s+(?:space|blocks|used|kbytes|bytes)\s+quota\s+limit\s+grace\b"
)
_QUOTA_USED = re.compile(r"\[?([\d.]{1,20}[kKMGTPE]?)\]?(\*?)")
_QUOTA_CELLS = 3
"""What is used, the quota and the limit."""
_GRACE = re.compile(r"-|none|\d{1,3}:\d\d|(?:\d{1,6}(?:w|days?|d|h|m|s)){1,6}")
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
        elif _is_no_disk(cells):
            continue
        elif int(cells["used"]) >= _FULL_PERCENT:
            yield _full(cells["mount"], cells["left"], cells["size"], counts_files, row)
        elif int(cells["used"]) >= _NEARLY_FULL_PERCENT and _IN_MEMORY.match(cells["device"]):
            yield _nearly_full(cells["mount"], cells["left"], cells["size"], row)


def _full(mount: str, left: str, size: str, counts_files: bool, row: int) -> Found:
    if counts_files:
        return Found("full-by-files", f"{mount} is full: {left} of {size} inodes are left.", row)
    return Found("full-by-space", f"{mount} is full: {left} of {size} is left.", row)


def _nearly_full(mount: str, left: str, size: str, row: int) -> Found:
    text = f"{mount} is in memory and nearly full: {left} of {size} is left."
    return Found("nearly-full-memory-disk", text, row)


def _is_no_disk(cells: re.Match[str]) -> bool:
    return any(map(_NO_DISK.search, (cells["device"], cells["mount"])))


def read_quota(output: Output) -> Iterator[Found]:
    """`quota` and `lfs quota`: limits that are reached. A long name of a file system stands on a
    line of its own."""
    name, in_table = "", False
    for row, line in enumerate(output.lines):
        cells = line.split()
        if _QUOTA_HEADER.match(line):
            name, in_table = "", True
        elif in_table and len(cells) == 1:
            name = cells[0]
        elif in_table and len(cells) >= _QUOTA_CELLS:
            is_named = not _QUOTA_USED.fullmatch(cells[0])
            name = cells[0] if is_named else name
            yield from _over(name, cells[1:] if is_named else cells, row)
        else:
            in_table = in_table and not cells


def _over(name: str, cells: list[str], row: int) -> Iterator[Found]:
    """Space comes first, then files. `quota` leaves the time of grace out where a limit is kept."""
    for unit in ("", " files"):
        used = _QUOTA_USED.fullmatch(cells[0]) if len(cells) >= _QUOTA_CELLS else None
        if used is None:
            return
        soft, hard = cells[1:3]
        grace = cells[3] if cells[3:] and _GRACE.fullmatch(cells[3]) else ""
        if used[2] or _reached(used[1], hard):
            text = f"{name or 'The file system'}: {used[1]}{unit} used, with a quota of {soft}"
            text += f" and a limit of {hard}."
            if grace == "none":
                text += " The time of grace is over: nothing more can be written."
            elif grace not in ("", "-"):
                text += f" The time of grace is {grace}."
            yield Found("star-marks-exceeded-quota", text, row)
        cells = cells[4 if grace else 3 :]


def _reached(used: str, limit: str) -> bool:
    now, most = read_size(used.upper()), read_size(limit.upper())
    return bool(now and most and now >= most)


READERS: dict[str, Reader] = {"df-disk-inodes": read_df, "findmnt-quota": read_quota}
"""By the id of the check."""
