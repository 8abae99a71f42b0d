"""The command line: a file a command, imported when it is called."""

from __future__ import annotations

import importlib
import os
import stat
import sys
from collections.abc import Callable
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kb import __version__
from kb.errors import KbError, LogError, unknown

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "tui": "open the terminal UI: paste, read, discuss",
    "ask": "diagnose an error, a log or a directory of logs",
    "chat": "discuss an error in a plain terminal",
    "classify": "diagnose many logs and count the incidents in them",
    "cases": "list the last cases, to go on with one",
    "watch": "follow growing logs and say what happens",
    "collect": "write a script that gathers evidence on the nodes",
    "mcp": "serve the tools for agents (Model Context Protocol)",
    "show": "print one incident",
    "list": "list all incidents",
    "import": "make a backlog of reports searchable, as leads",
    "new": "draft a new incident, from a log or from scratch",
    "serve": "serve diagnoses, records and pages over HTTP",
    "site": "write all records as a static web site",
    "index": "build or update the index",
    "lint": "check incident files",
    "verify": "compare the claims of incidents with clones of the projects",
    "diff": "show how changed incidents affect the ranking",
    "eval": "measure how reliably the right incident is found",
    "audit": "grade the answers to closed cases of your own",
    "doctor": "check the installation",
    "completion": "print the shell completion script",
}
"""Every command and its help; each command is in the module of its name (`import_`)."""

Function = TypeVar("Function", bound=Callable[..., Any])


class _LazyGroup(click.Group):
    """A group that imports each command only when it is needed. A path needs no command."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        return _import_command(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        follow = ctx.params.get("follow", False)
        if name in COMMANDS and not follow:
            return super().resolve_command(ctx, args)
        if follow or os.path.exists(name):  # noqa: PTH110  Path.exists raises where a name is too long
            return "", _import_command("start"), args
        if ctx.resilient_parsing:  # a completion
            return None, None, args
        raise _not_found(name)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        found = super().shell_complete(ctx, incomplete)
        return found or [CompletionItem(incomplete, type="file")]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def follow_option(function: Function) -> Function:
    """Add `-f` to a command that opens the screen."""
    return click.option(
        "-f",
        "--follow",
        is_flag=True,
        help="Follow PATH, which is still being written: show its end, and diagnose again when"
        " something fails.",
    )(function)


def _import_command(name: str) -> click.Command:
    module = f"{name}_" if iskeyword(name) else name
    command: click.Command = importlib.import_module(f"kb.cli.{module}").command
    return command


def _not_found(name: str) -> KbError:
    if " " in name or "\n" in name:
        return KbError('to ask about a text, use: kb ask "..."')
    if "/" in name or "." in name:
        return LogError(name, "no such file or directory")
    return KbError(unknown("command", name, COMMANDS, "kb --help lists the commands"))


def _is_input_piped() -> bool:
    """Whether stdin is a pipe or a file; a terminal and /dev/null are devices."""
    return not stat.S_ISCHR(os.fstat(sys.stdin.fileno()).st_mode)


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
    subcommand_metavar="[PATH]... | COMMAND [ARGS]...",
)
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[ID]",
    help="Go on with the last case, or with the one of this id; kb cases lists them.",
)
@click.version_option(__version__, prog_name="kb", message="%(prog)s %(version)s")
@follow_option
@click.pass_context
def cli(ctx: click.Context, resume: str | None, follow: bool) -> None:
    """Find known incidents of distributed training and inference, and their fixes.

    With PATH (a log, or a directory with the logs of one job) or with piped input, open the
    terminal UI; if the output is not a terminal, answer like kb ask.

    \b
    kb slurm-4711.out
    kb -f train.log
    some command 2>&1 | kb
    kb ask "NCCL WARN Error while creating shared memory segment"
    kb ask -f slurm-4711.out
    some command 2>&1 | kb ask
    """
    ctx.obj = follow
    if resume is not None and (follow or ctx.invoked_subcommand is not None):
        raise click.UsageError("--resume goes on with a case; leave out the rest")
    if ctx.invoked_subcommand is not None:
        return
    if resume is not None:
        ctx.invoke(_import_command("tui"), resume=resume)
    elif _is_input_piped() or (sys.stdin.isatty() and sys.stdout.isatty()):
        ctx.invoke(_import_command("start"))
    else:
        from kb.cli.terminal import put

        put(ctx.get_help())


class NamedPath(click.Path):
    """The name of a file or directory."""

    def __init__(self, **options: Any) -> None:
        super().__init__(path_type=Path, **options)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A `Path`, which would take an empty name for the working directory."""
        if not os.fspath(value):
            self.fail("the name of a path is empty; is a variable not set?", param, ctx)
        return super().convert(value, param, ctx)


class NewFile(NamedPath):
    """The name of a file to write. With `or_stdout`, `-` is stdout, as if no file was named."""

    def __init__(self, *, or_stdout: bool = False) -> None:
        super().__init__(dir_okay=False)
        self._or_stdout = or_stdout

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A `Path`, which would not tell `x/` from `x`."""
        if os.fspath(value) == "-":
            if self._or_stdout:
                return None
            self.fail("`-` is not the name of a file; write ./- if you mean it", param, ctx)
        if os.fspath(value).endswith(os.sep):
            self.fail(f"{value} names a directory; add the name of a file", param, ctx)
        return super().convert(value, param, ctx)


def incidents_option(function: Function) -> Function:
    """Add `--incidents DIR` to a command."""
    return click.option(
        "--incidents",
        type=NamedPath(file_okay=False),
        multiple=True,
        metavar="DIR",
        help="Also use the incidents in this directory; repeatable.",
    )(function)
