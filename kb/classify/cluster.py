"""Clusters unknown units that print the same message.

Drain mines templates from the masked lines. Its result depends on their order, so the lines are
sorted and deduplicated: the same units give the same clusters in any input order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from kb.classify.result import Result
from kb.log.mask import mask
from kb.log.prefixes import split_prefix
from kb.verdict import Verdict

_MIN_WORD_SHARE = 0.5
"""Minimum share of the words that two lines of a cluster have in common, from 0 to 1; what Drain
calls the similarity threshold."""
_ID_CHARACTERS = 12
"""Hexadecimal digits of the hash: short enough to read out, and two clusters of a run hardly share
48 bits."""
_MAX_EXAMPLES_SHOWN = 3
"""Units shown for a cluster; its members print the same message."""
_NO_ERROR_LINE = "(no error line)"


class Cluster(msgspec.Struct, frozen=True):
    """Unknown units with the same message."""

    id: str
    """A hash of the template."""
    template: str
    members: tuple[Result, ...]
    """In order of path."""

    @property
    def examples(self) -> tuple[Result, ...]:
        """The first members."""
        return self.members[:_MAX_EXAMPLES_SHOWN]

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that printed it, if known from the lines."""
        lines = (result.main_line for result in self.members)
        return tuple(sorted({line.host for line in lines if line and line.host}))


def find_clusters(results: Iterable[Result]) -> tuple[Cluster, ...]:
    """The clusters of the unknown units, largest first."""
    unknown = [result for result in results if result.verdict is Verdict.UNKNOWN]
    templates = _templates({_masked(result) for result in unknown})
    members: dict[str, list[Result]] = {}
    for result in sorted(unknown, key=lambda result: result.path):
        members.setdefault(templates[_masked(result)], []).append(result)
    found = [_cluster(template, units) for template, units in members.items()]
    return tuple(sorted(found, key=lambda cluster: (-len(cluster.members), cluster.id)))


def _cluster(template: str, members: Iterable[Result]) -> Cluster:
    identifier = hashlib.sha256(template.encode()).hexdigest()[:_ID_CHARACTERS]
    named = (msgspec.structs.replace(result, cluster=identifier) for result in members)
    return Cluster(identifier, template, tuple(named))


def _masked(result: Result) -> str:
    if result.main_line is None:
        return _NO_ERROR_LINE
    return mask(split_prefix(result.main_line.text).text).strip() or _NO_ERROR_LINE


def _templates(lines: set[str]) -> dict[str, str]:
    """Each line's template."""
    if not lines:
        return {}
    from drain3.drain import Drain

    drain = Drain(sim_th=_MIN_WORD_SHARE)
    found = {line: drain.add_log_message(line)[0] for line in sorted(lines)}
    return {line: cluster.get_template() for line, cluster in found.items()}
