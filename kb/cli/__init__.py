"""The command line: a file a command, imported when it is called."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from kb import __version__
from kb.errors import KbError

COMMANDS = {
    "tui": "open the terminal UI: paste, read, discuss",
    "ask": "diagnose an error, a log or a directory of logs",
    "chat": "discuss an error in a plain terminal",
    "classify": "diagnose many logs and count the incidents in them",
    "show": "print one incident",
    "list": "list all incidents",
    "new": "draft a new incident, from a log or from scratch",
    "index": "build or update the index",
    "lint": "check incident files",
    "diff": "show how changed incidents affect the ranking",
    "eval": "measure how reliably the right incident is found",
    "doctor": "check the installation",
    "completion": "print the shell completion script",
}
"""Every command and its help; each command is in the module of the same name."""

Function = TypeVar("Function", bound=Callable[..., Any])


class _LazyGroup(click.Group):
    """A group that imports each command only when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"kb.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KbError as error:
            from kb.log.clean import strip_controls

            raise click.ClickException(strip_controls(str(error))) from error


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.version_option(__version__, prog_name="kb", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Find known incidents of distributed training and inference, and their fixes.

    \b
    kb ask "NCCL WARN Error while creating shared memory segment"
    kb ask -f slurm-4711.out
    some command 2>&1 | kb ask
    """
    if ctx.invoked_subcommand is None and sys.stdin.isatty() and sys.stdout.isatty():
        from kb.cli.tui import open_screen

        ctx.exit(open_screen())
    elif ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def incidents_option(function: Function) -> Function:
    """Add `--incidents DIR` to a command."""
    return click.option(
        "--incidents",
        type=click.Path(path_type=Path, file_okay=False),
        multiple=True,
        metavar="DIR",
        help="Also use the incidents in this directory; repeatable.",
    )(function)
