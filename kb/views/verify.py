"""What `kb verify` prints: for people, and a line of JSON a claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from kb.contribute.verify import Claim, ClaimKind, Clone, Finding, Standing
from kb.log.clean import strip_controls


def finding_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """The findings of each record. What is as the record says takes no line of its own, nor does a
    text that is not found: it may be another project's."""
    for record, group in groupby(findings, lambda one: one.record):
        own = list(group)
        yield f"{record}: {_counts(own)}"
        for finding in own:
            if finding.standing is not Standing.CONTAINED and not _is_of_others(finding):
                yield strip_controls(
                    f"  {finding.standing}: {_claimed(finding.claim)}{_seen(finding)}"
                )


def to_json(finding: Finding) -> str:
    """One object on one line."""
    return msgspec.json.encode(finding).decode()


def summary(findings: Sequence[Finding], clone: Clone) -> str:
    """One sentence about a clone."""
    newest = clone.releases[-1].version
    records = len({one.record for one in findings})
    return (
        f"{clone.name} to {newest}: {records} records, {len(findings)} claims; {_counts(findings)}"
    )


def _is_of_others(finding: Finding) -> bool:
    return finding.standing is Standing.NOT_FOUND and finding.claim.kind is not ClaimKind.CHANGE


def _counts(findings: Sequence[Finding]) -> str:
    counts = Counter(one.standing for one in findings)
    return ", ".join(f"{counts[one]} {one}" for one in Standing if counts[one])


def _claimed(claim: Claim) -> str:
    if claim.kind is not ClaimKind.CHANGE:
        return f"{claim.kind} `{claim.text}`"
    stated = f"first in {claim.version}" if claim.version else "without a release"
    return f"{claim.text} {stated}"


def _seen(finding: Finding) -> str:
    if finding.standing is Standing.WRONG:
        return f"; the first release with it is {finding.first or 'none'}"
    if finding.standing is Standing.GONE:
        return f"; seen from {finding.first} to {finding.last}"
    return ""
