"""From the lines of an output to what they show.

A finding with a pattern alone is searched with Hyperscan. One with a rule is told by the reader of
the check; where there is no reader, nothing is said of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from index.documents import Pattern
from index.signatures import Scanner
from kb.check import Check, Finding
from kb.checks.model import Found, Observation, Output, Unread
from kb.checks.readers import readers_of
from kb.containment import contained

_MAX_QUOTE_CHARACTERS = 160
"""Of the line that shows a finding."""


def finding_patterns(check: Check) -> list[Pattern]:
    """The patterns of the findings that need no reader, in their order."""
    return [Pattern(finding.pattern or "", regex=True) for finding in plain_findings(check)]


def observe(output: Output, check: Check, scanner: Scanner) -> list[Observation]:
    """What the output of a check shows: abnormal values first, then what could not be read.
    `scanner` is that of its `finding_patterns`.

    A value that the reader cannot read is an observation without a finding.
    """
    findings = {finding.id: finding for finding in check.body.findings}
    results: list[Found | Unread] = [*_matched(output, check, scanner), *_read(output, check)]
    seen = [
        _unread(check, output, result)
        if isinstance(result, Unread)
        else _found(check, output, result, findings[result.finding])
        for result in results
        if isinstance(result, Unread) or result.finding in findings
    ]
    return in_order(dict.fromkeys(seen))


def _read(output: Output, check: Check) -> Iterator[Found | Unread]:
    for reader in readers_of(check.id):
        found: list[Found | Unread] = []
        lost: list[str] = []
        with contained("the output", lost.append):
            found.extend(reader(output))
        yield from found
        if lost:
            yield Unread("the rest of this output", 0)


def in_order(observations: Iterable[Observation]) -> list[Observation]:
    """Abnormal ones first, then what could not be read, then reassuring ones."""
    return sorted(observations, key=lambda seen: (True, None, False).index(seen.abnormal))


def plain_findings(check: Check) -> list[Finding]:
    """Those that need no reader, in their order."""
    return [finding for finding in check.body.findings if finding.pattern and not finding.rule]


def _matched(output: Output, check: Check, scanner: Scanner) -> Iterator[Found]:
    plain = plain_findings(check)
    data = "\n".join(output.lines).encode()
    for number, end in scanner.scan(data):
        row = data.count(b"\n", 0, max(end - 1, 0))
        yield Found(plain[number].id, _with_quote(plain[number].means, output.lines[row]), row)


def _with_quote(means: str, line: str) -> str:
    text = " ".join(line.split())
    quote = text if len(text) <= _MAX_QUOTE_CHARACTERS else text[:_MAX_QUOTE_CHARACTERS] + " ..."
    return f"{means.removesuffix('.')}: {quote}" if quote else means


def _found(check: Check, output: Output, found: Found, finding: Finding) -> Observation:
    return Observation(
        check=check.id,
        finding=finding.id,
        text=found.text,
        file=output.source,
        line=output.first_line + found.row,
        abnormal=finding.abnormal,
        suggests=finding.suggests,
        points_to=finding.points_to,
        then=finding.then,
        next=finding.next,
    )


def _unread(check: Check, output: Output, unread: Unread) -> Observation:
    return Observation(
        check=check.id,
        finding=None,
        text=f"Could not read {unread.what}.",
        file=output.source,
        line=output.first_line + unread.row,
        abnormal=None,
    )
