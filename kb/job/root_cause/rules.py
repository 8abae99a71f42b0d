"""The causal rules of the field, in the order of trust.

Each rule looks at one attempt and names the culprits, or passes. A rank that failed by itself
explains all that lost or waited for it; a launcher's report counts where the ranks are silent.
"""

from __future__ import annotations

from collections.abc import Callable

from index.progress import Notify, silent_notify
from kb.containment import surviving
from kb.job.attempt import Attempt
from kb.job.model import RootCause
from kb.job.root_cause.complaint import complained_alone, complained_first
from kb.job.root_cause.desync import mismatched, sent_more, timed_out_apart
from kb.job.root_cause.flight_recorder import recorded_differently
from kb.job.root_cause.kernel_kill import killed_by_kernel
from kb.job.root_cause.lost_in_restart import lost_in_restart
from kb.job.root_cause.missing_node import never_joined
from kb.job.root_cause.missing_rank import absent
from kb.job.root_cause.own_failure import failed_by_itself
from kb.job.root_cause.same_rank import started_twice
from kb.job.root_cause.slow_rank import slowed_down
from kb.job.root_cause.stopped_job import preempted, stopped_from_outside
from kb.job.root_cause.unreachable_host import cut_off, link_went_down

RULES: tuple[Callable[[Attempt], RootCause | None], ...] = (
    killed_by_kernel,
    slowed_down,
    link_went_down,
    lost_in_restart,
    sent_more,
    failed_by_itself,
    preempted,
    recorded_differently,
    mismatched,
    timed_out_apart,
    started_twice,
    cut_off,
    never_joined,
    absent,
    complained_alone,
    stopped_from_outside,
    complained_first,
)
"""The first that names a culprit decides."""


def find_root_cause(attempt: Attempt, notify: Notify = silent_notify) -> RootCause | None:
    """Name the culprits of one attempt; None where nothing failed. A rule that fails is told, and
    the next ones are asked."""
    found = surviving(RULES, lambda rule: rule(attempt), _loss, notify)
    return next(filter(None, found), None)


def _loss(rule: Callable[[Attempt], RootCause | None]) -> str:
    return f"who failed first is told without the rule {rule.__name__}"
