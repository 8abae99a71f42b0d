"""The table of questions as the documents of a tier, so that a question finds its row by meaning
as well."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import lru_cache

import msgspec

from index.documents import Document
from kb.answers import KnownQuestion, known_questions
from kb.answers.table import table_files
from kb.corpus.sources import SourceContent
from kb.evidence.glossary import has_chinese, translate
from kb.rules import file_digest

_FORMAT_VERSION = 2
"""Increase this number when this module makes other documents of the same row."""


class AnswerTable:
    """The rows of the table, as a `DocumentSource`."""

    directories = tuple(file.parent for file in table_files()[:1])

    def fingerprint(self) -> str:
        """Changes when a file of the table is written."""
        digest = hashlib.sha256(b"%d\0" % _FORMAT_VERSION + file_digest("glossary"))
        for file in table_files():
            status = file.stat()
            digest.update(f"{file.name}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
        return digest.hexdigest()

    def read(self, stored: Mapping[str, str]) -> SourceContent:
        """The rows as documents; one whose digest is stored is not made again."""
        content = SourceContent([], [], [])
        for row in known_questions():
            if stored.get(row.id) == _digest(row):
                content.unchanged.append(row.id)
            else:
                content.documents.append(_to_document(row))
        return content


@lru_cache(512)
def from_answer_payload(payload: bytes) -> KnownQuestion:
    """Read the row that a document of the table carries."""
    return msgspec.msgpack.decode(payload, type=KnownQuestion)


def _to_document(row: KnownQuestion) -> Document:
    return Document(
        id=row.id,
        digest=_digest(row),
        words=" \n".join([*_wordings(row), *row.about, row.en]),
        passages=(*wordings_in_english(row), row.en),
        patterns=(),
        example="",
        tags=frozenset(),
        payload=msgspec.msgpack.encode(row),
    )


@lru_cache(512)  # each question is compared with those of several rows
def wordings_in_english(row: KnownQuestion) -> tuple[str, ...]:
    """The wordings of a row, as far as the glossary has their Chinese words."""
    return tuple(map(translate, row.asks))


def _wordings(row: KnownQuestion) -> Iterator[str]:
    for ask in row.asks:
        yield ask
        if has_chinese(ask):
            yield translate(ask)


def _digest(row: KnownQuestion) -> str:
    content = b"%d\0" % _FORMAT_VERSION + file_digest("glossary") + msgspec.msgpack.encode(row)
    return hashlib.sha256(content).hexdigest()
