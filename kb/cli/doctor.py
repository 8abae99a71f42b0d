"""`kb doctor`: check the installation."""

from __future__ import annotations

import platform
from pathlib import Path

import click

from kb import __version__
from kb.cli import incidents_option
from kb.cli.exit_codes import of_check
from kb.cli.terminal import put, show
from kb.service.doctor import Check, run_checks
from kb.settings import load_settings


@click.command("doctor")
@incidents_option
def command(incidents: tuple[Path, ...]) -> None:
    """Check that everything a diagnosis needs is installed and works; exit code 1 if not."""
    put(f"kb {__version__}, Python {platform.python_version()}, {platform.platform()}")
    checks = []
    for check in run_checks(load_settings(incidents)):
        _print(check)
        checks.append(check)
    raise click.exceptions.Exit(of_check(good=all(check.good for check in checks)))


def _print(check: Check) -> None:
    from rich.text import Text

    mark = ("ok  ", "green") if check.good else ("BAD ", "red")
    advice = f"\n     {'':<10} {check.advice}" if check.advice else ""
    line = Text.assemble(mark, f" {check.name:<10} {check.detail}{advice}", overflow="ignore")
    line.no_wrap = True
    show(line, paged=False)
