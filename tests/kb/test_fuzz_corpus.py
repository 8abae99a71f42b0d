"""Inputs that once broke a promise of the readers: `make fuzz` found them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.targets import TARGETS

pytestmark = pytest.mark.slow


FOUND = sorted(Path("tests/fuzz_corpus").glob("*/*"))


@pytest.mark.slow
@pytest.mark.parametrize("path", FOUND, ids=[f"{path.parent.name}-{path.name}" for path in FOUND])
def test_found_input_breaks_nothing(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


def test_each_target_has_seeds() -> None:
    """`make fuzz` runs the targets that have a directory."""
    assert {path.parent.name for path in FOUND} == set(TARGETS)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("data", [b"", b"\n", b"\xff", b"---\n---\n"])
def test_hardly_anything_breaks_nothing(target, data: bytes) -> None:  # type: ignore[no-untyped-def]
    target(data)
