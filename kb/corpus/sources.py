"""Where the documents of a tier come from. Another kind of source is another class of this form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from index.documents import Document
from kb.problem import Problem


class SourceContent(msgspec.Struct, frozen=True):
    """What a source holds now, compared with what a store knows of it."""

    documents: list[Document]
    """New or changed."""
    unchanged: list[str]
    """Ids whose stored digest is still right. Every other stored document is gone."""
    problems: list[Problem]
    """Why documents were left out. None is left out without one."""


class DocumentSource(Protocol):
    """The documents of one tier."""

    def fingerprint(self) -> str:
        """Changes when any document is added, removed or written; cheap, reads no document."""

    def read(self, stored: Mapping[str, str]) -> SourceContent:
        """Read what changed; `stored` is the digest of every known document by its id."""
