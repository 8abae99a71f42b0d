"""The diagnostic check: a command, how its output is recognised, and what its findings mean.

The Markdown form is described in docs/check-format.md and read by `kb.markdown`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from kb.incident import Identifier, Kind, Line, Name, Text, Url

Expression = Annotated[str, msgspec.Meta(min_length=3, max_length=1_000, pattern=r"^[^\n]*$")]
"""A regular expression without look-around and back-references, searched in the whole output. Flags
stand in front of it: `(?m)`, `(?i)`. A line break in the output is written as `\\n`."""
Target = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[a-zA-Z0-9]+([.-][a-zA-Z0-9]+)*(:[a-z0-9]+(-[a-z0-9]+)*)?$", max_length=200
    ),
]
"""The id of an incident or of a playbook, or `playbook:cause` for one cause of a playbook."""


class Place(StrEnum):
    """An environment that has its own form of a command."""

    BARE = "bare"
    """A shell on the node."""
    DOCKER = "docker"
    K8S = "k8s"
    SLURM = "slurm"
    CLUSTER = "cluster"
    """All hosts of the job, by clush or pdsh."""


class Risk(StrEnum):
    """The worst that a check does to the job or to its neighbours, in order."""

    READ_ONLY = "read-only"
    PAUSES_PROCESS = "pauses-process"
    LOADS_GPU = "loads-gpu"
    LOADS_FABRIC = "loads-fabric"
    """It loads the network or the storage that others use too."""
    RESTARTS = "restarts"
    """It needs a new run of the job or of a service."""

    @property
    def in_words(self) -> str:
        """As people read it."""
        return _RISKS[self]


_RISKS = {
    Risk.READ_ONLY: "read-only",
    Risk.PAUSES_PROCESS: "pauses the process",
    Risk.LOADS_GPU: "loads the GPU",
    Risk.LOADS_FABRIC: "loads the network or the storage",
    Risk.RESTARTS: "needs a restart",
}


class JobState(StrEnum):
    """Whether the job must be alive for a check to tell something."""

    RUNNING = "running"
    ANY = "any"


class Loss(StrEnum):
    """What destroys the evidence that a check looks at."""

    EXIT = "exit"
    """The process ends."""
    RESTART = "restart"
    """The job, the container or the service is started again."""
    REBOOT = "reboot"
    ROTATION = "rotation"
    """Newer entries push out older ones: logs, ring buffers, events."""


class Cost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The price of one run."""

    seconds: Annotated[int, msgspec.Meta(gt=0, le=1_000_000)]
    risk: Risk


class Command(msgspec.Struct, frozen=True):
    """A command as it is run in one environment. Words in capitals (PID, POD, NODES, IFACE) stand
    for values of the user's job."""

    place: Place
    run: Text
    language: str = "sh"
    """Of the fenced block."""
    note: Text | None = None
    """What to know before it is run there."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the output of a check can show."""

    id: Identifier
    """Unique within the check."""
    means: Text
    pattern: Expression | None = None
    """Without `rule`, a match is the finding. With it, the pattern only captures what the rule
    compares, and matches more often than the finding holds."""
    rule: Line | None = None
    """The condition in words, where it needs code: a comparison, several rows or outputs."""
    abnormal: bool = True
    """False: a reassuring or neutral reading, which may stand in a normal output too."""
    suggests: Line | None = None
    """What it points to, in words."""
    points_to: tuple[Target, ...] = ()
    then: Line | None = None
    """What to do next, in words."""
    next: Identifier | None = None
    """The check to run next."""
    example: Text | None = None
    """Lines as they are printed."""


class Limit(msgspec.Struct, frozen=True):
    """One way in which a check misleads."""

    text: Text
    source: Url | None = None


class CheckHeader(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The front matter of a check; the keys are written in this order."""

    id: Identifier
    title: Line
    """What the command shows."""
    kind: Kind
    area: Name
    systems: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)]
    question: Line
    """The one thing that the output answers."""
    where: Line
    """On which machines, and for which processes."""
    needs: tuple[Line, ...] = ()
    """What must hold for it to work. `root` alone stands for that privilege."""
    cost: Cost
    caution: Line | None = None
    """A harm that the risk does not name."""
    needs_job: JobState
    lost_by: tuple[Loss, ...] = ()
    tells_apart: tuple[Line, ...] = ()
    """The causes between which it decides, where that is its main use."""
    in_log: bool = False
    """Whether its output is lines of the job's own log: then a log that the user gives is its
    output, and a healthy log is recognised too."""
    alike: bool = False
    """Whether healthy hosts of one job print the same lines: then a line that differs is told."""
    recognise: Annotated[tuple[Expression, ...], msgspec.Meta(min_length=1)]
    """Any of them says: this is the output of this check."""
    references: Annotated[tuple[Url, ...], msgspec.Meta(min_length=1)]


class CheckBody(msgspec.Struct, frozen=True, kw_only=True):
    """The sections of a check."""

    commands: Annotated[tuple[Command, ...], msgspec.Meta(min_length=1)]
    normal: Text
    """Lines of a healthy output."""
    findings: Annotated[tuple[Finding, ...], msgspec.Meta(min_length=1)]
    """In the order in which they are read; several may hold."""
    cannot_see: tuple[Limit, ...] = ()
    """Faults that leave no trace in this output."""
    false_pass: tuple[Limit, ...] = ()
    """When the output looks normal although something is wrong."""
    false_fail: tuple[Limit, ...] = ()
    """When the output looks wrong although all is well."""
    differs_by: Text | None = None
    """Where versions or options change the output."""


class Check(msgspec.Struct, frozen=True, tag="check"):
    """A whole check."""

    header: CheckHeader
    body: CheckBody

    @property
    def id(self) -> str:
        """The identifier, equal to the file name."""
        return self.header.id

    @property
    def title(self) -> str:
        """One line: what the command shows."""
        return self.header.title

    @property
    def kind(self) -> Kind:
        """Always a check."""
        return self.header.kind

    def command(self, place: Place) -> Command:
        """The command for an environment; the first one where that has none of its own."""
        commands = self.body.commands
        return next((command for command in commands if command.place is place), commands[0])
