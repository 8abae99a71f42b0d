"""`kb completion`: the shell completion script."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from kb.cli import cli
from kb.cli.terminal import put


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    bash: eval "$(kb completion bash)"   in ~/.bashrc
    zsh:  eval "$(kb completion zsh)"    in ~/.zshrc
    fish: kb completion fish > ~/.config/fish/completions/kb.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None, shell  # noqa: S101  the argument is one of the three
    put(kind(cli, {}, "kb", "_KB_COMPLETE").source())
