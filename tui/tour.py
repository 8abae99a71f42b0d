"""What an empty screen says: how it works, and three samples to try it on."""

from __future__ import annotations

from importlib.resources import files

from textual.content import Content

_SAMPLES = (
    ("1-shared-memory.log", "an NCCL error in a container"),
    ("2-watchdog.log", "a watchdog timeout with many possible causes: kb asks a question"),
    ("3-question.txt", "a hang without any message, described in Chinese"),
)

_IN_BROWSER = "It goes to the server of this page, which keeps nothing of it."

SAMPLE_COUNT = len(_SAMPLES)


def sample(number: int) -> str:
    """The text of a sample, numbered from 1."""
    name, _about = _SAMPLES[number - 1]
    return files("tui").joinpath("samples", name).read_text(encoding="utf-8").rstrip("\n")


def tour(in_browser: bool = False) -> Content:
    """The text of the empty screen."""
    here = [
        _or("kb tui FILE or DIR", "a log, or all logs of one job: who failed first"),
        _or("esc  then  o", "open a log from here"),
    ]
    lines = [
        Content.styled("Paste the error.", "bold"),
        Content("The matching incidents appear below, each with its confidence, the log"),
        Content("lines that support it, and the steps that fix it."),
        Content(_IN_BROWSER if in_browser else "Nothing leaves this machine."),
        Content(""),
        Content.styled("Try it", "bold $primary"),
        *(
            Content.assemble((f"  {number} ", "bold $accent"), f" {about}")
            for number, (_name, about) in enumerate(_SAMPLES, 1)
        ),
        Content(""),
        Content.styled("Or", "bold $primary"),
        *([] if in_browser else here),
        _or("esc  then  /", "read all records"),
        _or("esc  then  ?", "all keys"),
    ]
    return Content("\n").join(lines)


def _or(keys: str, about: str) -> Content:
    return Content.assemble(("  ", ""), (f"{keys:<20}", "$accent"), about)
