"""The table of promises is true: every test that it names exists."""

from __future__ import annotations

import re
from pathlib import Path

PROMISES = Path("docs/reliability.md").read_text(encoding="utf-8").partition("\n## Limits")[0]


def test_every_row_names_tests_that_exist() -> None:
    rows = [line for line in PROMISES.splitlines() if line.startswith("| ") and "---" not in line]
    promises = [row for row in rows if not row.rstrip().endswith("| test |")]
    assert len(promises) > 40
    for row in promises:
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", row)
        assert named, row
        for file, test in named:
            assert re.search(rf"def {test}\(", Path(file).read_text(encoding="utf-8")), test
