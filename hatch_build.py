"""Build hook: the package carries built indexes, so that the first question is answered at once.

They lie in the source tree, ignored by git, so that an editable installation has them as well.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PackedIndexHook(BuildHookInterface[Any]):
    """Makes the indexes when a record, the code or the encoder is newer than one of them."""

    def initialize(self, _version: str, build_data: dict[str, Any]) -> None:
        """Called before the files of the wheel are collected."""
        root = Path(self.root)
        sys.path.insert(0, self.root)
        from kb.paths import packed_answers, packed_guides, packed_index

        targets = (packed_index(), packed_guides(), packed_answers())
        made = min(path.stat().st_mtime if path.exists() else 0 for path in targets)
        if _latest_change(root) > made:
            _pack()
        build_data["artifacts"] += [f"/{path.relative_to(root).as_posix()}" for path in targets]


def _latest_change(root: Path) -> float:
    """Seconds since the epoch."""
    return max(path.stat().st_mtime for path in _sources(root))


def _sources(root: Path) -> Iterator[Path]:
    yield from (root / "incidents").rglob("*.md")
    for package in ("index", "kb"):
        for form in ("*.py", "*.toml", "*.onnx"):
            yield from (root / package).rglob(form)


def _pack() -> None:
    from index.encoder import load_encoder
    from kb.corpus.sync import pack_indexes

    encoder = load_encoder()
    pack_indexes(lambda: encoder)
