"""A run as one HTML page: nothing is fetched, and what logs and records say is text.

The page is a Jinja template with autoescape. Records are Markdown without HTML and images. A
content security policy lets nothing run but the page's own script.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import PurePath
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from index.progress import Notify, silent_notify
from kb.classify import Cluster, Result, Summary
from kb.classify.timeline import Slot, find_timeline
from kb.containment import surviving
from kb.incident import Incident
from kb.log.clean import strip_controls
from kb.markdown import render as to_markdown
from kb.verdict import Verdict
from kb.views.markup import to_html as markdown_to_html

_MAX_UNITS = 2_000
"""Number of rows in the table of failures; more make a page slow to open."""
_MAX_CLUSTERS = 200
_MAX_EXAMPLES = 5
_MAX_PLACES = 10
"""Number of clusters, of examples for each incident, and of hosts or ranks on the page."""
_FAILED = (Verdict.MATCH, Verdict.POSSIBLE, Verdict.UNKNOWN)
_HEADING_LEVELS = 2
"""Headings of a record stand so many levels deeper in the page."""
_SPANS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


def to_html(
    summary: Summary, records: Mapping[str, Incident], notify: Notify = silent_notify
) -> bytes:
    """Return the page; `records` are those of the incidents that were found. A section, or a row of
    one, that cannot be shown is told and left out.

    It is ASCII, with references for other signs: so it is right in any encoding that it passes.
    """
    environment = Environment(
        loader=PackageLoader("kb", "views"),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    page = environment.get_template("page.html").render(
        script_hash=_hash(environment.get_template("page.js").render()),
        **_counts(summary),
        **_sections(summary, records, notify),
    )
    whole = strip_controls(page).encode(errors="replace").decode()
    return whole.encode("ascii", "xmlcharrefreplace")


def _sections(
    summary: Summary, records: Mapping[str, Incident], notify: Notify
) -> dict[str, object]:
    """What stands in each section; None where it is left out."""
    makers: dict[str, Callable[[], object]] = {
        "incidents": lambda: list(_incidents(summary, records, notify)),
        "timeline": lambda: _timeline(summary, notify),
        "places": lambda: list(_places(summary)),
        "clusters": lambda: list(_clusters(summary, notify)),
        "units": lambda: list(_units(summary, notify)),
        "records": lambda: list(_records(records, notify)),
    }
    made = surviving(
        makers.items(),
        lambda item: (item[0], item[1]()),
        lambda item: f"the section `{item[0]}` is left out of the page",
        notify,
    )
    return dict.fromkeys(makers) | dict(made)


def _hash(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _counts(summary: Summary) -> dict[str, Any]:
    counts = summary.verdicts
    return {
        "total": len(summary.results),
        "failed": sum(counts[verdict] for verdict in _FAILED),
        "known": sum(sure + perhaps for _name, sure, perhaps in summary.incidents),
        "verdicts": [(verdict.value, counts[verdict]) for verdict in Verdict],
        "most": max((sure + perhaps for _name, sure, perhaps in summary.incidents), default=0),
        "unreadable": summary.unreadable,
        "left_out": max(0, len(_failed(summary)) - _MAX_UNITS),
        "healthy": counts[Verdict.HEALTHY],
    }


def _incidents(
    summary: Summary, records: Mapping[str, Incident], notify: Notify
) -> Iterator[dict[str, Any]]:
    def row(found: tuple[str, int, int]) -> dict[str, Any]:
        name, sure, perhaps = found
        examples = [result for result in summary.results if result.incident == name]
        return {
            "id": name,
            "title": records[name].title if name in records else name,
            "record": name in records,
            "sure": sure,
            "perhaps": perhaps,
            "counts": ", ".join(
                f"{count} {verdict}"
                for count, verdict in ((sure, Verdict.MATCH), (perhaps, Verdict.POSSIBLE))
                if count
            ),
            "quotes": _quotes(examples[:_MAX_EXAMPLES]),
        }

    return surviving(summary.incidents, row, lambda found: _loss(found[0]), notify)


def _loss(name: str) -> str:
    return f"{name} is left out of the page"


def _timeline(summary: Summary, notify: Notify) -> dict[str, Any] | None:
    found = find_timeline(summary.results, notify)
    if found is None:
        return None
    most = max(slot.counts.total() for slot in found.slots)
    return {
        "step": _span(found.step),
        "first": f"{found.slots[0].start:%Y-%m-%d %H:%M:%S}",
        "last": f"{found.slots[-1].start + found.step:%Y-%m-%d %H:%M:%S}",
        "most": most,
        "from_files": found.from_files,
        "slots": [
            {"start": slot.start, "x": place * 10 + 1, "bars": list(_bars(slot, most))}
            for place, slot in enumerate(found.slots)
        ],
    }


def _bars(slot: Slot, most: int) -> Iterator[dict[str, Any]]:
    """Stacked bars, scaled so that the tallest fills the picture."""
    top = 100.0
    for verdict in _FAILED:
        if count := slot.counts[verdict]:
            height = 100 * count / most
            top -= height
            yield {"verdict": verdict.value, "count": count, "y": top, "height": height}


def _span(step: timedelta) -> str:
    seconds = int(step.total_seconds())
    name, unit = next(pair for pair in _SPANS if seconds % pair[1] == 0)
    count = seconds // unit
    return name if count == 1 else f"{count} {name}s"


def _places(summary: Summary) -> Iterator[dict[str, Any]]:
    for title, column, rows in (
        ("Worst hosts", "host", summary.hosts),
        ("Worst ranks", "rank", summary.ranks),
    ):
        if rows:
            most = rows[0][1]
            yield {"title": title, "column": column, "rows": rows[:_MAX_PLACES], "most": most}


def _clusters(summary: Summary, notify: Notify) -> Iterator[dict[str, Any]]:
    chosen = summary.clusters[:_MAX_CLUSTERS]
    return surviving(chosen, _cluster, lambda cluster: _loss(f"cluster {cluster.id}"), notify)


def _cluster(cluster: Cluster) -> dict[str, Any]:
    return {
        "id": cluster.id,
        "count": len(cluster.members),
        "template": cluster.template,
        "hosts": ", ".join(cluster.hosts),
        "quotes": _quotes(cluster.examples),
    }


def _units(summary: Summary, notify: Notify) -> Iterator[dict[str, Any]]:
    failed = _failed(summary)[:_MAX_UNITS]
    return surviving(failed, _unit, lambda result: _loss(result.path), notify)


def _unit(result: Result) -> dict[str, Any]:
    sure = "" if result.confidence is None else f"{100 * result.confidence:.0f} %"
    return {
        "path": result.path,
        "verdict": result.verdict.value,
        "incident": result.incident,
        "confidence": sure,
        "cluster": result.cluster,
        "quote": _said(result),
    }


def _failed(summary: Summary) -> list[Result]:
    return [result for result in summary.results if result.verdict in _FAILED]


def _quotes(results: Iterable[Result]) -> Markup:
    """Where a line stands and what it says."""
    items = (
        Markup("<li><span class=quiet>{}</span>{}</li>").format(_where(result), _said(result))
        for result in results
    )
    return Markup('<ul class="quotes">{}</ul>').format(Markup().join(items))


def _where(result: Result) -> str:
    if result.main_line is None:
        return result.path
    file = result.main_line.file
    whole = file is None or PurePath(result.path).name == file
    return f"{result.path if whole else f'{result.path}/{file}'}:{result.main_line.line}"


def _said(result: Result) -> Markup:
    return Markup("<q>{}</q>").format(result.main_line.text) if result.main_line else Markup()


def _records(records: Mapping[str, Incident], notify: Notify) -> Iterator[dict[str, Any]]:
    ordered = [records[name] for name in sorted(records)]
    return surviving(ordered, _record, lambda incident: _loss(f"record {incident.id}"), notify)


def _record(incident: Incident) -> dict[str, Any]:
    return {
        "id": incident.id,
        "title": incident.title,
        "caution": incident.header.caution,
        "references": incident.header.references,
        "html": markdown_to_html(to_markdown(incident), deeper=_HEADING_LEVELS),
    }
