"""The list of cases."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import TYPE_CHECKING

from kb.log.clean import strip_controls
from kb.sessions import Session

if TYPE_CHECKING:
    from rich.console import RenderableType


def to_table(sessions: Iterable[Session]) -> RenderableType:
    """For people."""
    from rich.console import Group
    from rich.text import Text

    parts = []
    for session in sessions:
        when = session.time.astimezone().strftime("%Y-%m-%d %H:%M")
        parts.append(Text.assemble((session.id, "bold"), f"  {when}  {_state(session)}"))
        parts.append(Text(f"  {session.title}", "dim", overflow="fold"))
    return Group(*parts)


def to_rows(sessions: Iterable[Session]) -> str:
    """For programs: a line each, tab-separated."""
    return "".join("\t".join(map(strip_controls, _row(session))) + "\n" for session in sessions)


def _row(session: Session) -> tuple[str, ...]:
    return (
        session.id,
        session.time.isoformat(timespec="seconds"),
        str(len(session.messages)),
        str(len(session.done)),
        session.verdict or "",
        session.incident or "",
        session.title,
    )


def _state(session: Session) -> str:
    stands = " ".join(filter(None, (session.verdict, session.incident)))
    return ", ".join(
        filter(
            None,
            (stands, _count(session.messages, "message"), _count(session.done, "done step")),
        )
    )


def _count(things: Sized, what: str) -> str:
    number = len(things)
    return "" if not number else f"{number} {what}{'' if number == 1 else 's'}"
