"""Which checks a case needs, and which of them a script may take without asking."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kb.check import Check, Command, JobState, Loss, Place, Risk
from kb.collect.command import FOUND, tool_of, values_of
from kb.guides import Guide, Record
from kb.playbook import CheckStep, Playbook

_BY_HAND = {
    Risk.LOADS_GPU: "it loads the GPUs",
    Risk.LOADS_FABRIC: "it loads the network or the storage that others use",
    Risk.RESTARTS: "it needs a new run",
}
"""Why a person has to decide."""

_STARTERS = frozenset({"srun", "sbatch", "scancel"})
"""Commands of Slurm that start something, instead of asking the controller."""

_LOSSES = tuple(Loss)
"""What dies first stands first."""


class Taken(msgspec.Struct, frozen=True):
    """A check that the script takes."""

    check: Check
    command: Command


class Left(msgspec.Struct, frozen=True):
    """A check that the case needs and that the script leaves to a person."""

    check: Check
    why: str


class Choice(msgspec.Struct, frozen=True):
    """What a script does."""

    taken: tuple[Taken, ...]
    """In the order in which their evidence dies."""
    left: tuple[Left, ...]


def choose(guides: Sequence[Guide], record: Record | None = None) -> Choice:
    """The checks of a case; without one, those that only read, whose evidence a restart
    destroys, and that need nothing from a person."""
    checks = [guide for guide in guides if isinstance(guide, Check)]
    default = [one for one in checks if _is_default(one)]
    wanted = checks_of(record, guides) if record else default
    if isinstance(record, Playbook) and all(_why_not(one, _command(one)) for one in wanted):
        wanted = [*wanted, *default]  # a restart destroys it there too
    taken, left = [], []
    for check in sorted(wanted, key=_lifetime):
        command = _command(check)
        if why := _why_not(check, command):
            left.append(Left(check, why))
        elif command:
            taken.append(Taken(check, command))
    return Choice(tuple(taken), () if record is None else tuple(left))


def checks_of(record: Record, guides: Sequence[Guide]) -> list[Check]:
    """The checks of a playbook; of an incident, those whose findings point to it and those of the
    playbooks that lead to it; a check itself."""
    if isinstance(record, Check):
        return [record]
    checks = {guide.id: guide for guide in guides if isinstance(guide, Check)}
    names = list(_named(record)) if isinstance(record, Playbook) else list(_to(record.id, guides))
    return [checks[name] for name in dict.fromkeys(names) if name in checks]


def _named(playbook: Playbook) -> Iterator[str]:
    for step in playbook.body.checks:
        yield from _of_step(step)


def _of_step(step: CheckStep) -> Iterator[str]:
    yield step.check
    ways = (outcome.then.partition(":") for outcome in step.outcomes)
    yield from (name for kind, _, name in ways if kind == "check")


def _to(incident: str, guides: Iterable[Guide]) -> Iterator[str]:
    for guide in guides:
        if isinstance(guide, Check):
            if any(incident in finding.points_to for finding in guide.body.findings):
                yield guide.id
        elif any(incident in cause.incidents for cause in guide.body.causes):
            yield from _named(guide)


def _is_default(check: Check) -> bool:
    lost = {Loss.EXIT, Loss.RESTART} & set(check.header.lost_by)
    command = _command(check)
    return (
        bool(lost)
        and check.header.cost.risk is Risk.READ_ONLY
        and command is not None
        and FOUND.issuperset(values_of(command.run))
    )


def _lifetime(check: Check) -> tuple[bool, int, int, str]:
    header = check.header
    first_loss = min(map(_LOSSES.index, header.lost_by), default=len(_LOSSES))
    return (header.needs_job is not JobState.RUNNING, first_loss, header.cost.seconds, check.id)


def _command(check: Check) -> Command | None:
    """The form for a shell on the node; one of Slurm where that only asks the controller."""
    forms = {command.place: command for command in check.body.commands if command.language == "sh"}
    form = forms.get(Place.BARE)
    slurm = forms.get(Place.SLURM)
    if form is None and slurm and tool_of(slurm.run) not in _STARTERS:
        return slurm
    return form


def _why_not(check: Check, command: Command | None) -> str | None:
    header = check.header
    if header.in_log:
        return "its output is in the log of the job; give that to kb ask as well"
    if header.cost.risk in _BY_HAND:
        return _BY_HAND[header.cost.risk]
    if header.cost.risk is Risk.PAUSES_PROCESS and header.caution:
        return header.caution
    if command is None:
        return "it is not run in a shell on the node"
    return None
