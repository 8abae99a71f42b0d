"""The templates, and where each page is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from kb.check import Check
from kb.guides import Record
from kb.incident import Incident, Kind
from kb.log.clean import drop_controls
from kb.markdown import is_web_link
from kb.verdict import percent
from kb.views.markup import to_inline_html

DIRECTORIES = MappingProxyType(
    {
        Kind.INCIDENT: "incidents",
        Kind.CASCADE: "incidents",
        Kind.HARMLESS: "incidents",
        Kind.CHECK: "checks",
        Kind.PLAYBOOK: "playbooks",
    }
)
"""Below which name the pages of each kind are: a contract, because people share the links."""

SERVED = ""
STATIC = ".html"
"""How the address of a page ends."""


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A record in a list."""

    id: str
    kind: Kind
    title: str
    systems: tuple[str, ...]


def row_of(record: Record) -> Row:
    """What a list says of a record."""
    systems = record.header.systems if isinstance(record, Incident | Check) else ()
    return Row(record.id, record.kind, record.title, systems)


def place_of(record: Record | Row) -> str:
    """Its page, without the ending, from the root on."""
    return f"{DIRECTORIES[record.kind]}/{record.id}"


class Pages:
    """Makes pages. Their addresses end as `ending` says."""

    def __init__(self, ending: str = SERVED) -> None:
        self.ending = ending

    def make(self, template: str, root: str, **values: Any) -> str:
        """A page; `root` leads from it to the root: `./` or `../`."""
        made = self._environment.get_template(f"{template}.html").render(
            root=root, ending=self.ending, served=self.ending == SERVED, **values
        )
        return drop_controls(made)

    def listing(self, root: str, rows: Collection[Row]) -> str:
        """The list of all records."""
        by_title: Mapping[str, list[Row]] = {
            title: [row for row in rows if row.kind in kinds] for title, kinds in _SECTIONS.items()
        }
        return self.make("list", root, sections=by_title, total=len(rows))

    @cached_property
    def _environment(self) -> Environment:
        environment = Environment(
            loader=PackageLoader("kb.views", "web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters.update(percent=percent, place=place_of, prose=to_inline_html)
        environment.tests["web_link"] = is_web_link
        return environment


_SECTIONS: Mapping[str, Collection[Kind]] = {
    "Playbooks": {Kind.PLAYBOOK},
    "Incidents": {Kind.INCIDENT},
    "Checks": {Kind.CHECK},
    "Follow-on errors": {Kind.CASCADE},
    "Harmless messages": {Kind.HARMLESS},
}
"""In the order in which they are needed."""


def style_sheet() -> str:
    """The style of all pages."""
    here = Path(__file__).parent
    return "\n".join(
        path.read_text("utf-8") for path in (here.parent / "page.css", here / "web.css")
    )
