"""What the user can set. The docstrings are the manual; see also docs/configuration.md."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kb.errors import SettingsError
from kb.paths import config_file


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of `config.toml`."""

    incidents: tuple[str, ...] = ()
    """Directories of incidents that are added to those of the package. The same id in a later
    directory overrides. `--incidents` and `KB_INCIDENTS` (separated by `:`) come after them."""

    model: str | None = None
    """A sentence-transformers model to use instead of the shipped encoder, by name or path; needs
    `pip install 'incident-kb[models]'`. `KB_MODEL` overrides."""

    theme: str = "dark"
    """The colours of the screen: `dark`, `light`, `terminal` (the sixteen of your terminal), or any
    theme of Textual by its name."""

    keys: dict[str, str] = {}
    """Keys of the screen by action, see docs/tui.md: `tick = "x"`; several with commas between."""

    history: bool = True
    """Keep the last searches of the TUI on this machine, with secrets masked, so that one can be
    opened again. `false`: none is kept, and none is shown."""

    def __hash__(self) -> int:
        # `keys` cannot be hashed, and a worker is kept per settings.
        return hash((self.incidents, self.model))


def load_settings(extra_incidents: Sequence[Path] = ()) -> Settings:
    """Read the configuration file, the environment and the command line, in this order.

    Raises:
        SettingsError: the file is not TOML or holds an unknown key or a wrong value.
    """
    stored = _read(config_file())
    directories = [*stored.incidents, *os.environ.get("KB_INCIDENTS", "").split(os.pathsep)]
    return msgspec.structs.replace(
        stored,
        incidents=(*filter(None, directories), *map(str, extra_incidents)),
        model=os.environ.get("KB_MODEL") or stored.model,
    )


def _read(path: Path) -> Settings:
    try:
        if path.exists() and not path.is_file():
            raise SettingsError(f"the configuration {path} is not a file")
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return Settings()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the configuration {path}: {error}") from error
    try:
        return msgspec.convert(tomllib.loads(text), Settings)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise SettingsError(
            f"the configuration {path} is wrong: {error}; see docs/configuration.md"
        ) from error
