"""The option that says what one case is."""

from __future__ import annotations

import click

from kb.classify import Unit
from kb.cli import Function


def unit_option(function: Function) -> Function:
    """Add `--unit` to a command that diagnoses many cases."""
    return click.option(
        "--unit",
        type=click.Choice([unit.value for unit in Unit]),
        default=Unit.FILE.value,
        callback=lambda _context, _option, value: Unit(value),
        show_default=True,
        help="What one case is: each file, or each PATH as the logs of one job.",
    )(function)
