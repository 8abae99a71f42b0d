"""The records as a server shows them: lists, one whole, and what a few words find."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from kb.corpus.base import IndexState
from kb.guides import Record
from kb.incident import Kind
from kb.markdown import render
from kb.serve.parameters import one_of, text_of
from kb.serve.refusal import not_found
from kb.serve.respond import json_response
from kb.serve.turns import Turns
from kb.views.web import Row, row_of

MAX_FOUND = 20
"""Records that a search gives; who does not find it among them asks with other words."""
_MAX_ASKED_CHARACTERS = 400
"""Of what is searched for; a longer text is a log, which is diagnosed."""


class Rows(msgspec.Struct, frozen=True):
    """Some records."""

    records: list[Row]


class WholeRecord(msgspec.Struct, frozen=True):
    """A record, whole."""

    id: str
    kind: Kind
    title: str
    markdown: str


class Library:
    """All records, read once for each state of the index."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._read: tuple[IndexState, Mapping[str, Record]] | None = None

    async def records(self, request: Request) -> Mapping[str, Record]:
        """By id, in order of ids."""
        service = self._turns.service
        state = await self._turns.ask(request, service.state)
        if self._read is None or self._read[0] != state:
            incidents = await self._turns.ask(request, service.incidents)
            guides = await self._turns.ask(request, service.guides)
            found: list[Record] = [*incidents, *guides]
            self._read = state, {record.id: record for record in sorted(found, key=_by_id)}
        return self._read[1]

    async def found(self, request: Request, text: str) -> list[Row]:
        """The records that a few words are about, best first."""
        if not text.strip():
            return []
        search = self._turns.service.search
        found = await self._turns.ask(request, lambda: search(text, tuple(Kind), MAX_FOUND))
        return [row_of(one.record) for one in found]

    async def list(self, request: Request) -> Response:
        """`GET /v1/records`."""
        kind = one_of(request, "kind", [kind.value for kind in Kind])
        rows = map(row_of, (await self.records(request)).values())
        return json_response(Rows([row for row in rows if kind in (None, row.kind)]))

    async def one(self, request: Request) -> Response:
        """`GET /v1/records/{id}`."""
        record = named(await self.records(request), request)
        return json_response(WholeRecord(record.id, record.kind, record.title, render(record)))

    async def search(self, request: Request) -> Response:
        """`GET /v1/search?q=`."""
        return json_response(Rows(await self.found(request, asked(request))))


def asked(request: Request) -> str:
    """What is searched for."""
    return text_of(request, "q", _MAX_ASKED_CHARACTERS)


def named(records: Mapping[str, Record], request: Request) -> Record:
    """The record that the path names.

    Raises:
        RefusedError: there is none.
    """
    identifier = request.path_params["id"]
    if identifier not in records:
        raise not_found("there is no such record; /v1/records and /records list all")
    return records[identifier]


def _by_id(record: Record) -> str:
    return record.id
