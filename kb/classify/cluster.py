"""Clusters unknown units that print the same message.

Drain mines templates from the masked lines. Its result depends on their order, so the lines are
sorted and deduplicated: the same units give the same clusters in any input order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from index.progress import Notify, silent_notify
from kb.classify.result import Result
from kb.containment import surviving
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


def find_clusters(results: Iterable[Result], notify: Notify = silent_notify) -> tuple[Cluster, ...]:
    """The clusters of the unknown units, largest first. A unit whose message cannot be compared is
    told and in none."""
    unknown = [result for result in results if result.verdict is Verdict.UNKNOWN]
    masked = list(surviving(unknown, lambda result: (result, _masked(result)), _loss, notify))
    templates = _templates({line for _result, line in masked}, notify)
    members: dict[str, list[Result]] = {}
    for result, line in sorted(masked, key=lambda pair: pair[0].path):
        if line in templates:
            members.setdefault(templates[line], []).append(result)
    found = surviving(
        members.items(), _cluster, lambda pair: _loss(*pair[1][:_MAX_EXAMPLES_SHOWN]), notify
    )
    return tuple(sorted(found, key=lambda cluster: (-len(cluster.members), cluster.id)))


def _loss(*results: Result) -> str:
    return f"{', '.join(result.path for result in results)}: not grouped by message"


def _cluster(named: tuple[str, Iterable[Result]]) -> Cluster:
    template, members = named
    identifier = hashlib.sha256(template.encode()).hexdigest()[:_ID_CHARACTERS]
    marked = (msgspec.structs.replace(result, cluster=identifier) for result in members)
    return Cluster(identifier, template, tuple(marked))


def _masked(result: Result) -> str:
    if result.main_line is None:
        return _NO_ERROR_LINE
    return mask(split_prefix(result.main_line.text).text).strip() or _NO_ERROR_LINE


def _templates(lines: set[str], notify: Notify) -> dict[str, str]:
    """Each line's template."""
    if not lines:
        return {}
    from drain3.drain import Drain

    drain = Drain(sim_th=_MIN_WORD_SHARE)
    found = surviving(
        sorted(lines),
        lambda line: (line, drain.add_log_message(line)[0]),
        lambda line: f"the message `{line}` is not grouped with others",
        notify,
    )
    return {line: cluster.get_template() for line, cluster in list(found)}
