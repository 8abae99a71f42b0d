"""What to say about a name that does not exist."""

from __future__ import annotations

from collections.abc import Collection


def unknown(kind: str, name: str, known: Collection[str], otherwise: str) -> str:
    """A sentence with the known names that are close, or with what to do `otherwise`."""
    from difflib import get_close_matches

    close = " or ".join(f"`{other}`" for other in get_close_matches(name, known, cutoff=0.5))
    return f"unknown {kind} `{name}`; {f'did you mean {close}?' if close else otherwise}"
