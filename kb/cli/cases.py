"""`kb cases`: the last cases, to go on with one."""

from __future__ import annotations

import click

from kb.cli.terminal import put, say, show
from kb.sessions import Sessions
from kb.settings import load_settings

_ALL = "all"


@click.command("cases")
@click.option("--forget", metavar="ID|all", help="Remove a case, or all of them.")
def command(forget: str | None) -> None:
    """List the last cases, newest first: kb --resume ID goes on with one in the terminal UI, kb
    chat --resume ID in a plain terminal.

    In a pipe, one line each: id, time, messages, ticks, verdict, incident and title, tab-separated.
    """
    sessions = Sessions(load_settings(), say)
    if forget is not None:
        say(f"forgot {_forgotten(sessions, forget)}")
        return
    _show(sessions)


def _forgotten(sessions: Sessions, identifier: str) -> str:
    if identifier != _ALL:
        sessions.forget(sessions.find(identifier))
        return "1 case"
    gone = sessions.forget_all()
    return "1 case" if gone == 1 else f"{gone} cases"


def _show(sessions: Sessions) -> None:
    from kb.cli.terminal import output_console
    from kb.views.cases import to_rows, to_table

    found = sessions.all()
    if not sessions.is_kept:
        say("cases are not kept: the configuration has `history = false`")
    elif not found:
        say("no cases so far")
    elif output_console().is_terminal:
        show(to_table(found))
    else:
        put(to_rows(found), end="")
