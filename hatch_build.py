"""Build hook: the package carries a built index, so that the first question is answered at once.

The index lies in the source tree, ignored by git, so that an editable installation has it as well.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PackedIndexHook(BuildHookInterface[Any]):
    """Makes the index when a record, the code or the encoder is newer than it."""

    def initialize(self, _version: str, build_data: dict[str, Any]) -> None:
        """Called before the files of the wheel are collected."""
        root = Path(self.root)
        sys.path.insert(0, self.root)
        from kb.paths import packed_index

        target = packed_index()
        if not target.exists() or _latest_change(root) > target.stat().st_mtime:
            _pack(target)
        build_data["artifacts"].append(f"/{target.relative_to(root).as_posix()}")


def _latest_change(root: Path) -> float:
    """Seconds since the epoch."""
    return max(path.stat().st_mtime for path in _sources(root))


def _sources(root: Path) -> Iterator[Path]:
    yield from (root / "incidents").rglob("*.md")
    for package in ("index", "kb"):
        for form in ("*.py", "*.toml", "*.onnx"):
            yield from (root / package).rglob(form)


def _pack(target: Path) -> None:
    from index.encoder import load_encoder
    from kb.corpus.sync import pack_index

    encoder = load_encoder()
    pack_index(target, lambda: encoder)
