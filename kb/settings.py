"""User settings. The docstrings are the manual; see also docs/configuration.md."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from kb.errors import SettingsError
from kb.files import read_regular
from kb.paths import config_file

_MAX_CONFIGURATION_BYTES = 1 << 14
"""A hundred directories and keys; a table in a table in a table of a larger file takes long."""


class LlmSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[llm]`: the optional voice, which is off without it. See docs/llm.md."""

    url: Annotated[str, msgspec.Meta(pattern="^https?://")]
    """The base of an OpenAI-compatible server: `http://localhost:8000/v1`."""

    model: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    """The name of the model there."""

    key_variable: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None
    """Name of the environment variable that holds the key of the server."""

    wait_seconds: Annotated[float, msgspec.Meta(ge=0.1, le=120)] = 1.0
    """How long each sentence of the voice may take; after that it stays silent."""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of `config.toml`."""

    incidents: tuple[str, ...] = ()
    """Directories of incidents, in addition to the shipped ones. A later directory overrides an
    earlier one with the same id. `KB_INCIDENTS` (separated by `:`) and `--incidents` come last."""

    model: str | None = None
    """A sentence-transformers model to use instead of the shipped encoder, by name or path; needs
    `pip install 'incident-kb[models]'`. `KB_MODEL` overrides this."""

    theme: str = "dark"
    """The colour theme: `dark`, `light`, `terminal` (the 16 colours of your terminal), or the name
    of any Textual theme."""

    keys: dict[str, str] = {}
    """Key bindings by action, see docs/tui.md: `tick = "x"`; separate several keys by commas."""

    history: bool = True
    """Keep the last searches of the TUI, how cases ended and the last cases: on this machine, with
    secrets masked. With `false`, none of it is kept or shown."""

    keep_days: Annotated[int, msgspec.Meta(ge=1, le=3650)] = 30
    """Days that a case is kept after the last thing that happened in it; see `kb cases`."""

    run: bool = True
    """Read-only checks can be run from the screen and from `kb chat`, each after you have seen it
    and said yes. With `false`, commands are only copied."""

    covered: Annotated[float, msgspec.Meta(gt=0, lt=1)] | None = None
    """The share of your failures whose record is in the index, between 0 and 1; `kb audit` counts
    it. Confidences follow it. Without it, the share is that of the reports of the calibration."""

    alerts_to: Annotated[str, msgspec.Meta(pattern="^https?://")] | None = None
    """The URL of an incoming webhook of Slack, Mattermost or the like, to which `kb serve` sends
    what it finds about alerts. Whoever knows it can write there; `KB_ALERTS_TO` overrides this."""

    cases_at: Annotated[str, msgspec.Meta(pattern="^postgres(ql)?://")] | None = None
    """The URL of a PostgreSQL database that holds the cases of `kb serve`, so that several servers
    share them; needs `pip install 'incident-kb[postgres]'`. `KB_CASES_AT` overrides this."""

    public_url: Annotated[str, msgspec.Meta(pattern="^https?://")] | None = None
    """How people reach `kb serve`, for links in its messages. `KB_PUBLIC_URL` overrides this."""

    llm: LlmSettings | None = None
    """The optional voice of the conversation; needs `pip install 'incident-kb[llm]'`."""

    shared_cache: bool = False
    """The index is made for other users to read as well, as far as the umask allows: for one cache
    of a team, see `KB_CACHE`. It holds the whole text of all records, even of private ones."""


def load_settings(extra_incidents: Sequence[Path] = ()) -> Settings:
    """Read the configuration file, the environment and the command line, in this order.

    Raises:
        SettingsError: the file is not TOML or holds an unknown key or a wrong value, or a variable
            holds what is no name of a model or no URL.
    """
    stored = _read(config_file())
    model = os.environ.get("KB_MODEL") or stored.model
    if model and not model.isprintable():
        raise SettingsError(
            f"KB_MODEL or `model` in {config_file()} is not printable text; name a model or a path"
        )
    if "" in stored.incidents:
        raise SettingsError(
            f"`incidents` in {config_file()} holds an empty name; name a directory, or remove it"
        )
    directories = [*stored.incidents, *os.environ.get("KB_INCIDENTS", "").split(os.pathsep)]
    return msgspec.structs.replace(
        stored,
        incidents=(*filter(None, directories), *map(str, extra_incidents)),
        model=model,
        alerts_to=_url("KB_ALERTS_TO") or stored.alerts_to,
        public_url=_url("KB_PUBLIC_URL") or stored.public_url,
        cases_at=_url("KB_CASES_AT", ("postgresql://", "postgres://")) or stored.cases_at,
    )


def _url(variable: str, begins: Sequence[str] = ("https://", "http://")) -> str | None:
    value = os.environ.get(variable)
    if value and not value.startswith(tuple(begins)):
        raise SettingsError(f"{variable} is no URL; begin it with {' or '.join(begins)}")
    return value


def _read(path: Path) -> Settings:
    try:
        text = read_regular(path, _MAX_CONFIGURATION_BYTES).decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return Settings()
    except (OSError, UnicodeDecodeError) as error:
        why = (isinstance(error, OSError) and error.strerror) or error
        raise SettingsError(f"cannot read the configuration {path}: {why}") from error
    try:
        return msgspec.convert(tomllib.loads(text), Settings)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        # Not only what TOML forbids: a number may be too long, and brackets too deep.
        raise SettingsError(
            f"invalid configuration {path}: {error}; see docs/configuration.md"
        ) from error
