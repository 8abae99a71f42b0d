"""The parameters behind the `?` of an address, checked."""

from __future__ import annotations

from collections.abc import Collection

from starlette.requests import Request

from kb.serve.refusal import wrong


def number_of(request: Request, name: str, default: int, most: int) -> int:
    """A number from 1 on.

    Raises:
        RefusedError: it is none, or too large.
    """
    given = request.query_params.get(name)
    if given is None:
        return default
    if not (given.isascii() and given.isdigit() and len(given) < 10 and 1 <= int(given) <= most):
        raise wrong(f"`{name}` must be a number from 1 to {most}")
    return int(given)


def one_of(request: Request, name: str, values: Collection[str]) -> str | None:
    """One of some words; None where it is not given.

    Raises:
        RefusedError: it is another one.
    """
    given = request.query_params.get(name)
    if given is not None and given not in values:
        raise wrong(f"`{name}` must be one of: {', '.join(values)}")
    return given


def text_of(request: Request, name: str, most: int) -> str:
    """A text; "" where it is not given.

    Raises:
        RefusedError: it is too long.
    """
    given = request.query_params.get(name, "")
    if len(given) > most:
        raise wrong(f"`{name}` has more than {most} characters; send a log to /v1/diagnose")
    return given
