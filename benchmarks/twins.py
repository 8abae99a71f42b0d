"""The mutated twin of each record: its evidence with one deciding fact changed by rule. The record
must not match its twin: `python -m benchmarks.twins` prints the share that holds, and which do not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from kb.corpus.base import KnowledgeBase
from kb.corpus.directories import IncidentDirectories
from kb.diagnosis import diagnose
from kb.evidence.accelerators import FAMILIES, hardware_of, required_hardware
from kb.evidence.systems import versions_in
from kb.incident import Incident, Kind
from kb.log import Log
from kb.rules import read_rows
from kb.rules.rows import Version
from kb.settings import load_settings
from kb.verdict import ANSWER_AT

_EXCEPTION = re.compile(r"^(?P<before>.*?)\b(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\b: .*$")
_OTHER_EXCEPTION = "KeyError: 'column_7_of_the_feature_table'"
_CODES = re.compile(r"(?<=Xid )(\(.*?\): )\d+|((?:exit ?code:?|exitcode *:?|status) *-?)\d+\b")
_OTHER_CODE = 3
"""Neither a number that the driver gives a fault (Xid) nor one of a signal."""


class Twin(msgspec.Struct, frozen=True):
    """A text that looks like an incident, and is another."""

    record: str
    rule: str
    text: str


def twins(incident: Incident) -> Iterator[Twin]:
    """The twins of a record: for each block of its evidence, one a rule that can be applied."""
    for block in incident.body.evidence:
        text = block.text
        for rule, changed in (
            ("version past the fix", _with_line(text, _later_version(incident, text))),
            ("other hardware", _with_line(text, _other_hardware(incident, text))),
            ("other code", _other_code(incident, text)),
            ("other exception", _other_exception(text)),
        ):
            if changed != text:
                yield Twin(incident.id, rule, changed)


def held(knowledge: KnowledgeBase, made: Iterable[Twin]) -> dict[Twin, bool]:
    """Of each twin, whether its record stays below the bar."""
    found = {}
    for twin in made:
        matches = diagnose(Log.from_text(twin.text), knowledge).matches
        found[twin] = not any(
            one.incident.id == twin.record and one.confidence >= ANSWER_AT for one in matches
        )
    return found


def all_twins() -> list[Twin]:
    """Of all incidents of the package."""
    records, _problems = IncidentDirectories().load()
    return [twin for record in records if record.kind is Kind.INCIDENT for twin in twins(record)]


def guarded(found: Mapping[Twin, bool]) -> dict[str, float]:
    """The figures that must not get worse."""
    return {"twins": len(found), "held": round(sum(found.values()) / len(found), 4)}


def table(found: Mapping[Twin, bool]) -> str:
    """The share that holds, by rule and in all."""
    total = Counter(twin.rule for twin in found)
    good = Counter(twin.rule for twin, holds in found.items() if holds)
    rows = [("all", sum(found.values()), len(found))]
    rows += [(rule, good[rule], count) for rule, count in sorted(total.items())]
    lines = [f"| {rule} | {count} | {held / count:.3f} |\n" for rule, held, count in rows]
    return "| changed | twins | no match |\n| --- | --: | --: |\n" + "".join(lines)


def _with_line(text: str, line: str | None) -> str:
    return text if line is None else f"{line}\n{text}"


def _later_version(incident: Incident, text: str) -> str | None:
    """As the program prints its version; none where the evidence states one already."""
    rows = {row.name: row for row in read_rows("systems", "version", Version)}
    for fix in incident.header.fixed_in:
        if fix.version and not fix.note and fix.system in rows:
            row = rows[fix.system]
            if fix.system not in versions_in(text):
                return row.examples[0].replace(row.yields[0], "9.9.9")
    return None


def _other_hardware(incident: Incident, text: str) -> str | None:
    """A card of a family that the record does not name; none where the evidence names one."""
    needed = required_hardware(incident.header.environment.hardware)
    if not needed.families or hardware_of([text]).families:
        return None
    for row in FAMILIES:
        if row.name not in needed.families:
            card = hardware_of([row.products[0]])
            if needed.excludes(card):
                return f"GPU 0: {row.products[0]}"
    return None


def _other_code(incident: Incident, text: str) -> str:
    """A number that a signature or the title names is another one."""
    header = incident.header
    deciding = " ".join([header.title, *(one.pattern for one in header.signatures)])

    def changed(code: re.Match[str]) -> str:
        number = code[0].removeprefix(code[1] or code[2])
        named = re.search(rf"(?<!\d){number}(?!\d)", deciding)
        return f"{code[1] or code[2]}{_OTHER_CODE}" if named else code[0]

    return _CODES.sub(changed, text)


def _other_exception(text: str) -> str:
    """The last line with an exception says another one."""
    lines = text.split("\n")
    for place in reversed(range(len(lines))):
        if match := _EXCEPTION.match(lines[place]):
            lines[place] = match["before"] + _OTHER_EXCEPTION
            break
    return "\n".join(lines)


def main() -> None:
    """Ask all twins."""
    with KnowledgeBase.open(load_settings()) as knowledge:
        found = held(knowledge, all_twins())
    for twin, holds in found.items():
        if not holds:
            print(f"{twin.rule}: {twin.record}")
    print(table(found))


if __name__ == "__main__":
    main()
