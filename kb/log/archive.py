"""Reads the archives that the script of `kb collect` leaves: a tar file of a host, with one text
for each check, named by its id.

Nothing is unpacked to the disk, so no name in an archive leads anywhere; links and devices are left
out. Of a damaged archive what comes before the damage is read.
"""

from __future__ import annotations

import errno
import io
import re
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import msgspec

from kb.containment import contained
from kb.files import read_regular

MAX_ARCHIVE_BYTES = 1 << 26
"""Read of one archive, packed and expanded: the script keeps half a megabyte of each check."""
MAX_OUTPUTS = 1_000
"""Read of one archive; a script has some dozens of checks, for a few processes each."""

_MAX_NAMED = 6
"""Checks named in a notice."""
_MAX_REASON_CHARACTERS = 100

_NAME = re.compile(r".*\.(?:tar|tar\.gz|tgz)")
_LIST = re.compile(rb"kb-[^/\0]{1,90}/collected\0")
"""With which an archive of ours begins: the list of what is in it."""
_OUTPUT = re.compile(
    r"kb-[^/]{1,90}/(?P<label>(?P<check>[a-z0-9A-Z-]{1,100})(?P<subject>(?:\.[A-Za-z]{1,20}-[\w:]{1,60}){0,2}))"
    r"\.txt"
)
_HOST = re.compile(r"[\w.-]{1,64}")
_TAR_BLOCK_BYTES = 512
_END = bytes(2 * _TAR_BLOCK_BYTES)
_MAGIC_GZIP = b"\x1f\x8b"


class Collected(msgspec.Struct, frozen=True):
    """That a text is the output of a check, taken by the script."""

    host: str
    check: str
    """The id."""
    subject: str | None
    """The process or interface, where it was taken for several: `rank 3, PID 4711`."""
    stopped: str | None
    """Why the output is not whole: `did not end within 26 s`."""


class Archive(msgspec.Struct, frozen=True):
    """What an archive holds."""

    outputs: Mapping[str, bytes]
    """By name, such as `node5/df-shm.txt`."""
    origins: Mapping[str, Collected]
    notices: tuple[str, ...]
    """What the user should know about it."""


def has_name_of_archive(path: Path) -> bool:
    """Whether it is called like one: it may be damaged."""
    return _NAME.fullmatch(path.name) is not None


def is_collected(path: Path) -> bool:
    """Whether a file is an archive of the script, by its name and by how it begins."""
    if not _NAME.fullmatch(path.name):
        return False
    try:
        with path.open("rb") as file:
            head = file.read(_TAR_BLOCK_BYTES * 2)
    except OSError:
        return False  # whoever reads it says what is wrong
    return _LIST.match(_expanded(head, _TAR_BLOCK_BYTES)[0]) is not None


def read_archive(path: Path) -> Archive:
    """The outputs in an archive.

    Raises:
        OSError: it cannot be read, is too large, or holds no output.
    """
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=1)  # its outputs are read one after the other
def _read(path: Path, _changed: int) -> Archive:
    notices: list[str] = []
    damage: list[str] = []
    data, whole = _expanded(read_regular(path, MAX_ARCHIVE_BYTES), MAX_ARCHIVE_BYTES)
    members: dict[str, bytes] = {}
    with contained(f"{path.name} is damaged; read up to there", damage.append):
        for name, text in _members(data):
            if len(members) == MAX_OUTPUTS:
                notices.append(f"{path.name}: only the first {MAX_OUTPUTS:,} outputs are read")
                break
            members.setdefault(name, text)
    if len(data) == MAX_ARCHIVE_BYTES and not whole:
        large = f"has more than {MAX_ARCHIVE_BYTES >> 20} MB unpacked"
        notices.append(f"{path.name} {large}; only its beginning was read")
    elif damage:
        notices.extend(damage)
    elif not (whole and data.endswith(_END)):
        notices.append(f"{path.name} is damaged; only its beginning was read")
    archive = _sorted_out(path, members, notices)
    if not archive.outputs:
        raise OSError(errno.EINVAL, "; ".join(["it holds no output of a check", *notices]))
    return archive


def _expanded(data: bytes, most: int) -> tuple[bytes, bool]:
    """At most so many bytes, and whether that is all."""
    if not data.startswith(_MAGIC_GZIP):
        return data[:most], len(data) <= most
    unpacker = zlib.decompressobj(wbits=31)
    parts, length = [], 0
    try:
        # Of damaged data, what stands before the damage comes in small steps.
        for start in range(0, len(data), 4096):
            parts.append(unpacker.decompress(data[start : start + 4096], most - length))
            length += len(parts[-1])
            if unpacker.eof or length >= most:
                break
    except zlib.error:
        pass
    return b"".join(parts), unpacker.eof


def _members(data: bytes) -> Iterator[tuple[str, bytes]]:
    import tarfile

    with tarfile.open(fileobj=io.BytesIO(data), mode="r:", errorlevel=2) as archive:
        for member in archive:
            # A sparse file can stand for any number of bytes.
            if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.sparse:
                continue
            file = archive.extractfile(member)
            if file is not None:
                text = file.read(MAX_ARCHIVE_BYTES)
                if len(text) < member.size:
                    raise EOFError("its end is missing")
                yield member.name, text
        # The library takes a broken header for the end.
        if any(data[archive.offset : archive.offset + _TAR_BLOCK_BYTES]):
            raise ValueError("the header of an output is broken")


def _sorted_out(path: Path, members: Mapping[str, bytes], notices: list[str]) -> Archive:
    rows = [
        line.split("\t")
        for name, text in members.items()
        if name.endswith("/collected")
        for line in text.decode("utf-8", "replace").splitlines()
    ]
    named = next((row[1] for row in rows if row[0] == "host" and len(row) > 1), "")
    host = named if _HOST.fullmatch(named) else path.name
    stopped = {
        row[1]: row[2][:_MAX_REASON_CHARACTERS]
        for row in rows
        if row[0] == "stopped" and len(row) > 2
    }
    skipped = [row[1] for row in rows if row[0] == "skipped" and len(row) > 2]
    if skipped:
        shown = ", ".join(skipped[:_MAX_NAMED])
        more = f" and {len(skipped) - _MAX_NAMED} more" if len(skipped) > _MAX_NAMED else ""
        notices.append(f"{host}: not taken: {shown}{more}; `collected` in {path.name} says why")
    outputs, origins = {}, {}
    for name, text in members.items():
        if match := _OUTPUT.fullmatch(name):
            shown = f"{host}/{match['label']}.txt"
            outputs[shown] = text
            origins[shown] = Collected(
                host, match["check"], _subject(match["subject"]), stopped.get(match["label"])
            )
    return Archive(outputs, origins, tuple(notices))


def _subject(label: str) -> str | None:
    """`.rank-3.PID-4711` as `rank 3, PID 4711`."""
    return ", ".join(part.replace("-", " ", 1) for part in label.split(".")[1:]) or None
