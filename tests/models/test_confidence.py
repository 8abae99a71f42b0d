"""The shipped coefficients are those that the shipped reports give."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from msgspec.structs import asdict

from kb.knowledge import Knowledge

pytest.importorskip("sklearn", reason="needs the extra [models]")

from benchmarks.fusion import calibrate, read_samples

REPORTS = sorted(Path("benchmarks/reports").glob("*.jsonl"))


def test_fitting_again_gives_the_shipped_coefficients(knowledge: Knowledge) -> None:
    shipped = tomllib.loads(Path("kb/confidence.toml").read_text(encoding="utf-8"))
    assert shipped.pop("command").split()[3:] == [path.as_posix() for path in REPORTS]
    fitted = asdict(calibrate(read_samples(REPORTS, knowledge)))
    # Other processors sum in another order: the last digits of a cosine may differ.
    assert {name: fitted[name] for name in shipped} == pytest.approx(shipped, abs=0.05)
