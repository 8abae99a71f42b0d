"""What a row of each file holds."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

Level = Literal["context", "follow-on", "hint", "error", "fatal"]


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all rows have."""

    name: str
    examples: tuple[str, ...]
    """Texts that the rule is for; what they yield is tested."""
    not_examples: tuple[str, ...] = ()
    """Texts that only look like it."""


class Rule(Row, frozen=True, kw_only=True):
    """A row of one pattern."""

    pattern: str
    """A regular expression; its placeholders are replaced when it is read. In the file it may be
    a list: any of its members."""


class Time(Rule, frozen=True, kw_only=True):
    """How a time is written."""

    yields: str
    """ISO 8601 without what the examples leave out."""


class Host(Rule, frozen=True, kw_only=True):
    """How the name of a host looks; its own name is its placeholder."""

    about: str


class Taken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a prefix tells about a line."""

    rank: int | None = None
    host: str | None = None
    text: str = "boom"
    """What is left of the line."""


class Prefix(Rule, frozen=True, kw_only=True):
    """What stands in front of a line; its groups may be `rank`, `local_rank` and `host`."""

    yields: Taken = Taken()


class Export(Row, frozen=True, kw_only=True):
    """How a platform writes what a program said into a JSON object: pointers to the fields."""

    text: tuple[str, ...]
    time: tuple[str, ...] = ()
    speaker: tuple[str, ...] = ()
    part: tuple[str, ...] = ()
    host: tuple[str, ...] = ()
    program: tuple[str, ...] = ()
    pid: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    """One of these must be there."""
    aside: tuple[str, ...] = ()
    """Fields that tell of the line, of the machine or of the job: nothing in them was said."""
    yields: str
    """The line as it is read."""


class Speaker(Rule, frozen=True, kw_only=True):
    """How a job's own logger names the rank that says a line: the group `rank`."""

    alone: bool = False
    """It counts even where a file holds only one number."""


class Origin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a path tells about who wrote the file."""

    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    attempt: int | None = None


class Layout(Rule, frozen=True, kw_only=True):
    """How launchers name files; its groups are those of `Origin`."""

    yields: Origin


class Mask(Rule, frozen=True, kw_only=True):
    """A detail that differs between two prints of the same line."""

    begins: str
    """The characters that it can begin with, as in a character class."""
    shown: str
    """What stands for it."""
    yields: tuple[str, ...]
    """The examples, masked."""


class Marker(Rule, frozen=True, kw_only=True):
    """A sign in a line, and how much a line with it tells."""

    grade: Level
    yields: Level | None = None
    """The grade of the examples, where it is not that of the row."""


class Ending(Rule, frozen=True, kw_only=True):
    """How a program says that its work is done, as a whole and without a failure."""


class Result(Rule, frozen=True, kw_only=True):
    """What a program leaves behind at its end, and on its way."""


class Setback(Rule, frozen=True, kw_only=True):
    """What went wrong on the way, and how a later line says that it was made good."""

    overcome: str
    """The form of that line; `<of>` stands for what the first line names."""


class Notice(Rule, frozen=True, kw_only=True):
    """What reads like trouble and is none, wherever it stands."""


class Doubt(Rule, frozen=True, kw_only=True):
    """How a program says in passing that something went wrong: the work may have ended, but not
    well. Its pattern runs on Hyperscan."""

    negates: bool = False
    """It says that something did not happen, or cannot be read, so no word before it denies it."""
    final: bool = False
    """No process survives it: what the log of a rank says behind it is no sign that it went on,
    unless it was started again."""


class System(Rule, frozen=True, kw_only=True):
    """A library, a tool or a platform, and how a text names it."""

    way_of: str | None = None
    """Its purpose. A job that runs one way of it does not need the others."""
    short_names: tuple[str, ...] = ()
    """What people write in front of a version."""


class Version(Rule, frozen=True, kw_only=True):
    """How the version of a system is printed; the first group that matched is the version."""

    yields: tuple[str, ...]
    """The versions in the examples."""


class Product(Rule, frozen=True, kw_only=True):
    """Accelerators of one kind, and how records write it."""

    product: str
    """How a card of it is named: a regular expression, case matters."""
    products: tuple[str, ...]
    """Names of such cards."""


class Accelerator(Product, frozen=True, kw_only=True):
    """A family of accelerators."""

    share: float
    """How common it is where a record does not say; all add up to 1."""


class Generation(Product, frozen=True, kw_only=True):
    """A generation of accelerators; its product is found in the name of a card."""


class Ended(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a report tells about how a process ended."""

    rank: int | None = None
    local_rank: int | None = None
    hosts: tuple[str, ...] = ()
    """It ran on one of these, as far as told."""
    name: str | None = None
    """Of a process, where neither its rank nor its id is told."""
    pid: int | None = None
    code: int | None = None
    """Negative for a signal, as in Python's subprocess."""
    by_kernel: bool = False
    aborted: bool = False
    """It ended the whole job on purpose."""


class ExitReport(Rule, frozen=True, kw_only=True):
    """A line that reports how a process ended."""

    word: str
    """Stands in every such line."""
    grade: Level = "context"
    """How much such a line tells by itself."""
    yields: Ended


class ExitBlock(Row, frozen=True, kw_only=True):
    """A report over several lines: one opens it, one closes it; both tell parts."""

    opens: str
    closes: str
    word: str
    """Stands in every line that opens one."""
    yields: Ended


class FailureKind(StrEnum):
    """What kind of failure it is."""

    DISK = "disk"
    MEMORY = "memory"
    HARDWARE = "hardware"
    NETWORK = "network"
    RENDEZVOUS = "rendezvous"
    SIGNAL = "signal"
    EXCEPTION = "exception"
    DESYNC = "desync"
    HANG = "hang"
    STRAGGLER = "straggler"


Role = Literal[
    "stopped",
    "unclassified",
    "lost peer",
    "timed out",
    "out of step",
    "self-inflicted",
    "external cause",
]


class Failure(Rule, frozen=True, kw_only=True):
    """A failure, its kind, and what it says about its rank."""

    kind: FailureKind
    role: Role


class Trigger(Rule, frozen=True, kw_only=True):
    """Words by which a clause does not say that something is so, here and now."""

    scope: Literal["negated", "hypothetical", "past", "elsewhere"]


class Wrapper(Rule, frozen=True, kw_only=True):
    """An exception that only reports another one."""


class Reason(Rule, frozen=True, kw_only=True):
    """A reason for which an operating system or a server refuses something; the name says it."""


class Token(Rule, frozen=True, kw_only=True):
    """A token that can be told by its form; its name is what is shown for it."""

    source: str | None = None
    """Where the pattern comes from, if not from this project."""


class Secret(Rule, frozen=True, kw_only=True):
    """A secret that is told by what stands around it: the groups of the pattern."""

    sign: str
    """Words with `¦` between them, in lower case; one of them stands in every such line. `\\n`
    is the beginning of a line, and `\\t` a tab."""
    about: str = ""
    """Words like those of `sign`; one of them stands somewhere in every such text, where the
    signs alone stand in most."""
    shown: str | None = None
    """What is shown for it, if not the name of the row."""
    lines: int = 0
    """How many lines it may reach over, before and after the line with the word."""


class Column(Rule, frozen=True, kw_only=True):
    """A column of a table whose cells are secrets, by its heading; its name is what is shown."""

    sign: str
    """As of a secret: a word that stands in every such heading."""
