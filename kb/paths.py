"""Where things lie: the incidents that come with the package, the cache, the history,
imported backlogs, the configuration."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import platformdirs

from kb.errors import SettingsError, short_name

_APP = "incident-kb"

BACKLOG_SUFFIX = ".backlog"
"""Of the file of an import."""


def packaged_incidents() -> Path:
    """The incidents of the installed package, or those of the checkout it runs from."""
    package = Path(__file__).resolve().parent
    installed = package / "incidents"
    return installed if installed.is_dir() else package.parent / "incidents"


def packed_index() -> Path:
    """The index of the packaged incidents; hatch_build.py makes it, in a checkout as well."""
    return Path(__file__).resolve().parent / "index.sqlite.zst"


def config_file() -> Path:
    """The user's configuration file, whether it exists or not."""
    override = os.environ.get("KB_CONFIG")
    return (
        expand_user(override)
        if override
        else _of_user(platformdirs.user_config_dir) / "config.toml"
    )


def cache_directory() -> Path:
    """Where indexes are kept; `KB_CACHE` overrides the platform's choice."""
    override = os.environ.get("KB_CACHE")
    return expand_user(override) if override else _of_user(platformdirs.user_cache_dir)


def packed_guides() -> Path:
    """The index of the packaged checks and playbooks, made like `packed_index`."""
    return packed_index().with_name("guides.sqlite.zst")


def packed_answers() -> Path:
    """The index of the table of questions, made like `packed_index`."""
    return packed_index().with_name("answers.sqlite.zst")


def state_directory() -> Path:
    """Where the last searches are kept; `KB_STATE` overrides the platform's choice."""
    override = os.environ.get("KB_STATE")
    return expand_user(override) if override else _of_user(platformdirs.user_state_dir)


def data_directory() -> Path:
    """Where imported backlogs are kept, which only their sources can replace; `KB_DATA` overrides
    the platform's choice."""
    override = os.environ.get("KB_DATA")
    return expand_user(override) if override else _of_user(platformdirs.user_data_dir)


def backlog_directory() -> Path:
    """Where imported backlogs lie, a file each, whether there are any or not."""
    return data_directory() / "backlog"


def backlogs() -> list[Path]:
    """The files of all imported backlogs, in the order of their names.

    Raises:
        SettingsError: their directory cannot be read.
    """
    directory = backlog_directory()
    try:
        return sorted(directory.glob(f"*{BACKLOG_SUFFIX}"))
    except OSError as error:
        why = f"cannot read the imports in {short_name(directory)}: {error.strerror}"
        raise SettingsError(f"{why}; set KB_DATA to a directory of yours") from error


def index_directory(incidents: Iterable[Path], model: str, kind: str = "index") -> Path:
    """The index of one list of incident directories and one encoder; `kind` begins its name."""
    key = b"\0".join([*(os.fsencode(path.resolve()) for path in incidents), model.encode()])
    return cache_directory() / f"{kind}-{hashlib.sha256(key).hexdigest()[:16]}"


def expand_user(path: Path | str) -> Path:
    """The path with `~` as the home that it stands for. `~name` of nobody, or with a NUL, stays as
    it is, as in a shell: then there is no such file."""
    with suppress(ValueError):
        return Path(os.path.expanduser(path))  # noqa: PTH111  pathlib raises for nobody
    return Path(path)


def _of_user(find: Callable[[str], str]) -> Path:
    """A directory of the user.

    Raises:
        SettingsError: the user has no home.
    """
    try:
        return Path(find(_APP))
    except RuntimeError as error:
        raise SettingsError(
            "no home directory; set HOME, or all of KB_CONFIG, KB_CACHE, KB_STATE and KB_DATA"
        ) from error
