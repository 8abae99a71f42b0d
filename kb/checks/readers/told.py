"""Values that somebody tells in words: "ibstat: mlx5_4 Rate 100, all the others 400"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import msgspec

from kb.checks.model import Found, Output, Reader

_MAX_CHARACTERS = 300
"""Of a line that somebody wrote; those of a program can be longer."""
_FLAGS = re.IGNORECASE | re.ASCII
_GAP = r"[^\n]{0,30}?"
_OTHERS = r"(?:others?\b|(?:the )?rest\b|其他|其它|其余|剩下)"
_ALL = r"(?:\ball\b|\bevery|全部|都是|others?\b|(?:the )?rest\b|其他|其它|其余)"
_FEW_GB = 4.0
"""Memory of a host that the next allocation uses up."""
_CLOCK_OFF_SECONDS = 1.0
_FULL_PERCENT = 98


class Odd(msgspec.Struct, frozen=True):
    """One of several alike things, whose value somebody compares with that of the others."""

    finding: str
    subject: str
    value: str
    text: str
    """With `{0}` for the thing, `{1}` for its value and `{2}` for that of the others."""
    printed: str
    """The value of one thing, as the program prints it; a remark behind it tells the others'."""

    @property
    def forms(self) -> tuple[tuple[re.Pattern[str], tuple[int, int, int]], ...]:
        """Expressions, and their groups of the thing, its value and the others' value."""
        subject = rf"(?<![\w.])({self.subject})(?!\w)"
        value = rf"(?<![\w.])({self.value})"
        own_first = rf"{subject}{_GAP}{value}{_GAP}{_OTHERS}{_GAP}{value}"
        others_first = rf"{_ALL}{_GAP}{value}{_GAP}{subject}{_GAP}{value}"
        return (
            (re.compile(own_first, _FLAGS), (1, 2, 3)),
            (re.compile(others_first, _FLAGS), (2, 3, 1)),
        )


ODD = {
    "ethtool-link": Odd(
        "trained-lower",
        r"(?:en|eth|ib|bond|hsn)\w{1,14}|[\w-]{0,20}(?:node|gpu|host)[\w-]{0,10}\d|speed:?",
        r"\d{3,7}(?= ?Mb/s)",
        "{0} runs at {1} Mb/s, the others at {2}.",
        r"Speed: (\d{3,7})Mb/s",
    ),
    "ibstat": Odd(
        "link-trained-lower",
        r"(?:mlx[45]|irdma|hfi1|hns)_\d{1,3}|(?:ib|bnxt_re|rdma)\d{1,3}|port ?\d{1,2}",
        r"\d{2,4}(?![\w.]?\d|_)",
        "{0} at {1} Gb/s, the other ports at {2}.",
        r"\bRate: (\d{2,4})\s*$",
    ),
    "nvidia-smi-query-gpu": Odd(
        "slow-gpu-sets-pace",
        r"GPU ?#?\d{1,3}|card ?\d{1,3}|\d{1,2} ?号卡|[\w-]{0,20}(?:node|gpu|host)[\w-]{0,10}\d",
        r"\d{2,4}(?= ?MHz)",
        "{0} runs at {1} MHz, the others at {2}; whether it is busy is not shown.",
        r", (\d{2,4}) MHz\b",
    ),
}
"""By the id of the check."""

_SERVICE = re.compile(
    r"\bsystemctl\b[^\n]{0,20}?\bstatus\b (\w[\w@.-]{1,60}?)(?:\.service)?(?![\w.-])[^\n]{0,40}?"
    r"(?:\b(failed|inactive|dead)\b|(失败))",
    _FLAGS,
)
_DENIED = re.compile(r"\b(?:no|not|never|isn't)\b|n't\b|没有|不是", re.IGNORECASE)
_FREE = re.compile(
    r"\bfree\b(?: -\w{1,4})? ?[^\n]{0,20}?(\d{1,6}(?:\.\d{1,3})?) ?G(?:i?B)?\b[^\n]{0,12}?"
    r"(?:\b(?:available|free|left)\b|可用|空闲|剩)",
    _FLAGS,
)
_CLOCK = re.compile(
    r"\b(?:chronyc?|ntpq|timedatectl|date)\b[^\n]{0,60}?(?<![\w.])(\d{1,9}(?:\.\d{1,9})?) ?"
    r"(?:s|secs?|seconds)\b ?(off|slow|fast|behind|ahead|apart)\b",
    _FLAGS,
)
_FULL = re.compile(
    r"\bdf\b[^\n]{0,40}?(?<!\S)(/[\w./-]{0,100})[^\n]{0,30}?(?<![\w.])(\d{2,3}) ?%", _FLAGS
)
_GID = re.compile(
    r"\bindex (\d{1,3})(?![\d.])[^\n,;，；]{0,16}?((?:::ffff:\d|fe80)[\w.:]{0,40})", _FLAGS
)
_GID_NEXT = re.compile(
    r"(?:^|[,;，；] ?|\band )(\d{1,3}) (?:is|=|是) ?(::ffff:\d[\d.]{0,14})", _FLAGS
)
_GID_ROW = re.compile(r"^\S{1,60}\s+\d{1,2}\s+(\d{1,3})\s+([0-9a-f:]{39})\b")
_GID_SET = re.compile(r"\bNCCL_IB_GID_INDEX[= ]+(\d{1,3})\b")
_OFFERED = re.compile(r"\ballocatable\b[^\n\d]{0,40}(\d{1,2})\b", _FLAGS)
_CAPACITY = re.compile(r"\bcapacity\b[^\n\d]{0,40}(\d{1,2})\b", _FLAGS)
_WIDTH = "pcie.link.width.current"
_WIDEST = "pcie.link.width.max"
_LINK_LOCAL = re.compile(r"fe80", re.IGNORECASE)


def _lines(output: Output) -> Iterator[tuple[int, str]]:
    for row, line in enumerate(output.lines):
        if line and len(line) <= _MAX_CHARACTERS:
            yield row, line


def read_odd(odd: Odd, output: Output) -> Iterator[Found]:
    """The one whose value is lower than that of the others."""
    for row, line in _lines(output):
        for expression, groups in odd.forms:
            if not (found := expression.search(line)):
                continue
            own, value, usual = (found[group] for group in groups)
            if float(value) < float(usual):
                yield Found(odd.finding, odd.text.format(own, value, usual), row)
                return
    yield from _remarked(odd, output)


def _remarked(odd: Odd, output: Output) -> Iterator[Found]:
    """One printed value, and a remark that tells the others': "the other nodes give 100000Mb/s"."""
    others = re.compile(rf"{_OTHERS}{_GAP}(?<![\w.])({odd.value})", _FLAGS)
    printed: list[tuple[str, int]] = []
    usual = ""
    for row, line in _lines(output):
        if found := re.search(odd.printed, line):
            printed.append((found[1], row))
        elif found := others.search(line):
            usual = found[1]
    if len(printed) == 1 and usual and float(printed[0][0]) < float(usual):
        value, row = printed[0]
        yield Found(odd.finding, odd.text.format("This one", value, usual), row)


def read_service(output: Output) -> Iterator[Found]:
    """`systemctl status slurmd says failed`."""
    for row, line in _lines(output):
        found = _SERVICE.search(line)
        if found and not _DENIED.search(line):
            is_off = (found[2] or "").lower() in ("inactive", "dead")
            state = "does not run" if is_off else "has failed"
            yield Found("unit-down", f"{found[1]} {state}.", row)
            return


def read_free(output: Output) -> Iterator[Found]:
    """`free shows 1.2 GB available`."""
    for row, line in _lines(output):
        if (found := _FREE.search(line)) and float(found[1]) < _FEW_GB:
            text = f"Only {found[1]} GB of host memory is available."
            yield Found("host-memory-almost-exhausted", text, row)
            return


def read_clock(output: Output) -> Iterator[Found]:
    """`chronyc says 41 s slow`."""
    for row, line in _lines(output):
        if (found := _CLOCK.search(line)) and float(found[1]) > _CLOCK_OFF_SECONDS:
            yield Found("node-clock-off-s", f"The clock is {found[1]} s {found[2]}.", row)
            return


def read_full(output: Output) -> Iterator[Found]:
    """`df says /scratch is 100% full`."""
    for row, line in _lines(output):
        found = _FULL.search(line)
        if found and _FULL_PERCENT <= int(found[2]) <= 100 and not found[1].startswith("/dev/"):
            counts_files = "inode" in line.lower() or "df -i" in line
            finding = "full-by-files" if counts_files else "full-by-space"
            yield Found(finding, f"{found[1]} is full: {found[2]} % are used.", row)
            return


def read_gids(output: Output) -> Iterator[Found]:
    """The GID index that is set, and what stands there."""
    gids: dict[str, tuple[str, int]] = {}
    chosen = ""
    for row, line in _lines(output):
        for found in (_GID_ROW.match(line), *_GID.finditer(line), *_GID_NEXT.finditer(line)):
            if found:
                gids.setdefault(found[1], (found[2], row))
        if named := _GID_SET.search(line):
            chosen = named[1]
    gid, row = gids.get(chosen, ("", 0))
    if _LINK_LOCAL.match(gid):
        text = f"NCCL_IB_GID_INDEX={chosen} is a link-local address, {gid}."
        yield Found("index-link-local", text, row)


def read_offered(output: Output) -> Iterator[Found]:
    """`Capacity 8, Allocatable 7`."""
    for row, line in _lines(output):
        own, most = _OFFERED.search(line), _CAPACITY.search(line)
        if own and most and int(own[1]) < int(most[1]):
            text = f"{own[1]} of {most[1]} GPUs of the node can be given to pods."
            yield Found("unhealthy-devices-taken-device", text, row)
            return


def read_widths(output: Output) -> Iterator[Found]:
    """`nvidia-smi --query-gpu=index,pcie.link.width.current`: a link narrower than the others."""
    column = -1
    seen: list[tuple[int, str, int]] = []
    for row, line in enumerate(output.lines):
        cells = [cell.strip() for cell in line.split(",")]
        if cells[0] == "index" and _WIDTH in cells and _WIDEST not in cells:
            column = cells.index(_WIDTH)
        elif column > 0 and len(cells) > column and cells[0].isdigit() and cells[column].isdigit():
            seen.append((int(cells[column]), cells[0], row))
    most = max((width for width, _gpu, _row in seen), default=0)
    low = [one for one in seen if one[0] < most]
    if low and 2 * len(low) < len(seen):
        width, gpu, row = low[0]
        text = f"The PCIe link of GPU {gpu} has {width} lanes, those of the others {most}."
        yield Found("link-trained-fewer-lanes", text, row)


READERS: dict[str, Reader] = {
    **{check: partial(read_odd, odd) for check, odd in ODD.items()},
    "chrony": read_clock,
    "df-disk-inodes": read_full,
    "free-h": read_free,
    "kubectl-describe-node": read_offered,
    "nvidia-smi-pcie-link": read_widths,
    "show-gids": read_gids,
    "systemctl-status": read_service,
}
"""By the id of the check."""
