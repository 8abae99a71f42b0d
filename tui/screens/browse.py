"""All records: searched by words, filtered by system and kind, read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, OptionList, Select
from textual.widgets.option_list import Option

from kb.incident import Incident, Kind
from tui.actions import Place, bindings
from tui.titles import what_is_seen
from tui.widgets.detail import Detail
from tui.widgets.hints import Hints


class BrowseScreen(Screen[None]):
    """The list beside the record."""

    BINDINGS = bindings(Place.BROWSE)
    PLACES = (Place.BROWSE,)
    AUTO_FOCUS = "#words"

    def __init__(self, incidents: Sequence[Incident]) -> None:
        super().__init__()
        self._incidents = {incident.id: incident for incident in incidents}
        self._texts = {incident.id: _searched(incident) for incident in incidents}

    def compose(self) -> ComposeResult:
        systems = Counter(
            name for incident in self._incidents.values() for name in incident.header.systems
        )
        with Horizontal(id="filters"):
            yield Input(placeholder="search words (all must match)", id="words")
            yield Select(_options(systems), prompt="all systems", id="system", compact=True)
            kinds = [(kind.value, kind.value) for kind in Kind]
            yield Select(kinds, prompt="all kinds", id="kind", compact=True)
        with Horizontal(id="records"):
            yield OptionList(id="list", classes="pane")
            yield Detail(id="record", classes="pane")
        hints = Hints(id="hints")
        yield hints
        hints.show(Place.BROWSE)

    def on_mount(self) -> None:
        """List all."""
        self._list()

    @on(Input.Changed, "#words")
    @on(Select.Changed)
    def _list(self) -> None:
        words = self.query_one("#words", Input).value.lower().split()
        system, kind = (self.query_one(name, Select).selection for name in ("#system", "#kind"))
        found = [
            incident
            for incident in self._incidents.values()
            if (system is None or system in incident.header.systems)
            and (kind is None or kind == incident.kind)
            and all(word in self._texts[incident.id] for word in words)
        ]
        listed = self.query_one("#list", OptionList)
        listed.clear_options()
        listed.add_options(Option(_line(incident), id=incident.id) for incident in found)
        listed.border_title = f"{len(found)} of {len(self._incidents)} records"
        listed.highlighted = 0 if found else None

    @on(OptionList.OptionHighlighted, "#list")
    @work(exclusive=True, group="record")
    async def _read(self, event: OptionList.OptionHighlighted) -> None:
        incident = self._incidents[event.option_id or ""]
        await self.query_one(Detail).show_record(incident)

    @on(Input.Submitted, "#words")
    def _to_list(self) -> None:
        self.query_one("#list").focus()

    @on(OptionList.OptionSelected, "#list")
    def action_read(self) -> None:
        """Go from the list to the record and back."""
        listed, record = self.query_one("#list"), self.query_one(Detail)
        (listed if record.has_focus else record).focus()

    def action_filter(self) -> None:
        """Go to the words."""
        self.query_one("#words").focus()


def _searched(incident: Incident) -> str:
    header, body = incident.header, incident.body
    parts = [header.id, header.title, *header.systems, *header.aliases]
    parts += [body.symptom, body.setting, body.cause, body.evidence_text]
    return "\n".join(parts).lower()


def _options(systems: Counter[str]) -> Iterable[tuple[str, str]]:
    return [(f"{name} ({count})", name) for name, count in sorted(systems.items())]


def _line(incident: Incident) -> Content:
    kind = "" if incident.kind is Kind.INCIDENT else f"  {incident.kind}"
    return Content.assemble(
        (incident.id, "$primary"), (kind, "dim"), "\n", what_is_seen(incident.title)
    )
