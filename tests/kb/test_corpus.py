"""What a long-lived process needs of the engine."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.log import Log
from kb.settings import Settings


def test_a_closed_engine_is_freed_at_once(
    built_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An encoder is some 60 MB: the collector of circles comes by too seldom for that."""
    monkeypatch.setenv("KB_CACHE", str(built_cache))
    gc.collect()
    gc.disable()
    try:
        with KnowledgeBase.open(Settings()) as knowledge:
            diagnose(Log.from_text("NCCL hangs"), knowledge)
            encoder = weakref.ref(knowledge.encoder)
        del knowledge
        assert encoder() is None
    finally:
        gc.enable()
