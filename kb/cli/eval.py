"""`kb eval`: how surely the right incident is found."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from kb.cli import incidents_option
from kb.settings import load_settings


@click.command("eval")
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE.jsonl..."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--plot",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Draw the curves into this directory, as SVG and PNG.",
)
@incidents_option
def command(
    paths: tuple[Path, ...], as_json: bool, directory: Path | None, incidents: tuple[Path, ...]
) -> None:
    """Ask labelled reports and print how many are answered rightly.

    A report is a line of JSON: `text`, `relevant` (ids of the right incidents, empty where nothing
    known fits), `kind`; optionally `id`, `lang` and `fix_must_match`.
    """
    from kb.cli.terminal import progress, say, show
    from kb.evaluate import measure, read_cases, run
    from kb.knowledge import Knowledge
    from kb.library import Library

    cases = [case for path in paths for case in read_cases(path)]
    settings = load_settings(incidents)
    records, _problems = Library(settings.incidents).load()
    systems = {record.id: record.header.systems[0] for record in records}
    with progress("asking") as report, Knowledge.open(settings, notify=say) as knowledge:
        outcomes = []
        for outcome in run(cases, knowledge, systems.keys()):
            outcomes.append(outcome)
            report(len(outcomes), len(cases))
    result = measure(outcomes, systems)
    if directory:
        from kb.evaluate.plots import plot

        for path in plot(result, directory):
            say(f"wrote {path}")
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(result), indent=1).decode())
    else:
        from kb.views.evaluation import render

        show(render(result))
