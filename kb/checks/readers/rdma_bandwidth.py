"""The table of `ib_write_bw` and its like, against the rates that ports have."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.checks.model import Found, Output, Reader

_HEADER = re.compile(r"#bytes\s+#iterations\s+BW peak\[(Gb|MB|MiB|GB)/sec\]")
_ROW = re.compile(
    r"^\s*(\d{1,12})\s+\d{1,12}\s+\d{1,9}(?:\.\d{1,6})?\s+(\d{1,9}(?:\.\d{1,6})?)\s+[\d.]{1,20}"
)
_PORT_RATE = re.compile(r"^\s*[Rr]ate:\s+(\d{1,4})\b|\bSpeed: (\d{1,4})000Mb/s")
_RATES = (10, 25, 40, 50, 56, 100, 200, 400, 800)
"""Of ports, in Gb/s."""
_SHARE = 0.85
"""Of its rate a port that is well carries more, with large messages."""
_LARGE_BYTES = 32_768
_GBITS = {"Gb": 1.0, "GB": 8.0, "MB": (1 << 20) * 8 / 1e9, "MiB": (1 << 20) * 8 / 1e9}
"""In one of the unit; perftest's MB has 2^20 bytes."""


def read_write_bw(output: Output) -> Iterator[Found]:
    """The average of the largest messages, against the rate of the port where it is shown, or
    against the next rate that a port can have."""
    unit = "Gb"
    shown = [int(found[1] or found[2]) for found in map(_PORT_RATE.search, output.lines) if found]
    best: tuple[int, float, int] | None = None
    for row, line in enumerate(output.lines):
        if header := _HEADER.search(line):
            unit = header[1]
        elif (values := _ROW.match(line)) and int(values[1]) >= max(
            _LARGE_BYTES, best[0] if best else 0
        ):
            best = int(values[1]), float(values[2]) * _GBITS[unit], row
    if best is None:
        return
    size, speed, row = best
    rate = max(shown, default=next((one for one in _RATES if one * 1.01 >= speed), _RATES[-1]))
    if speed < _SHARE * rate:
        of_port = f"the port has {rate}" if shown else f"a port of {rate} Gb/s does more"
        text = f"{speed:.1f} Gb/s with messages of {size} bytes; {of_port}."
        yield Found("link-host-limits", text, row)


READERS: dict[str, Reader] = {"ib-write-bw": read_write_bw}
"""By the id of the check."""
