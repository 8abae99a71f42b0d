"""The pages of the server, made here: they need no script."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from kb.guides import Record
from kb.serve.bodies import opened_log
from kb.serve.diagnoses import Diagnoses
from kb.serve.library import Library, asked, named
from kb.serve.turns import Turns
from kb.views.web import Pages, answer_page, place_of, record_page, row_of, style_sheet

_STYLE_CACHED = "max-age=3600"


class WebPages:
    """Answers browsers."""

    def __init__(self, turns: Turns, diagnoses: Diagnoses, library: Library) -> None:
        self._turns = turns
        self._diagnoses = diagnoses
        self._library = library
        self._pages = Pages()
        self._style = style_sheet()

    async def home(self, request: Request) -> Response:
        """The box to paste into."""
        total = len(await self._library.records(request))
        return HTMLResponse(self._pages.make("home", "./", total=total))

    async def ask(self, request: Request) -> Response:
        """The answer about what was pasted or sent."""
        if request.method != "POST":
            return RedirectResponse("./")
        async with opened_log(request) as log:
            diagnosis = await self._diagnoses.of(request, log)
        page = await self._turns.write(lambda: answer_page(self._pages, diagnosis))
        return HTMLResponse(page)

    async def records(self, request: Request) -> Response:
        """The list of all."""
        records = await self._library.records(request)
        rows = list(map(row_of, records.values()))
        return HTMLResponse(await self._turns.write(lambda: self._pages.listing("./", rows)))

    async def record(self, request: Request) -> Response:
        """One record; at the place of another kind it is where it should be."""
        records = await self._library.records(request)
        record = named(records, request)
        place = place_of(record)
        if request.url.path.rpartition("/")[0].rpartition("/")[2] != place.partition("/")[0]:
            return RedirectResponse(f"../{place}")
        return HTMLResponse(await self._turns.write(lambda: self._made(record, records)))

    def _made(self, record: Record, records: Mapping[str, Record]) -> str:
        return record_page(self._pages, record, records)

    async def search(self, request: Request) -> Response:
        """What a few words find."""
        text = asked(request)
        rows = await self._library.found(request, text)
        return HTMLResponse(self._pages.make("search", "./", asked=text, rows=rows))

    async def style(self, _request: Request) -> Response:
        """The style of all pages."""
        headers = {"Cache-Control": _STYLE_CACHED}
        return Response(self._style, headers=headers, media_type="text/css")
