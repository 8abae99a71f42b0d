"""One reader for each check whose findings need more than a pattern, by the id of the check."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from kb.checks.model import Found, Output, Reader, Unread
from kb.checks.readers.memory import read_free, read_shm
from kb.checks.readers.nvidia_smi import read_nvidia_smi
from kb.checks.readers.pip_list import read_pip_list
from kb.checks.readers.stacks import read_stacks
from kb.checks.readers.topology import read_topology
from kb.checks.readers.torch_oom import read_torch_oom
from kb.checks.readers.values import COMPARISONS, read_values

READERS: dict[str, Reader] = {
    "df-shm": read_shm,
    "free-h": read_free,
    "nvidia-smi": read_nvidia_smi,
    "nvidia-smi-topo": read_topology,
    "pip-list": read_pip_list,
    "py-spy-all-ranks": read_stacks,
    "torch-oom-message": read_torch_oom,
    **{
        check: partial(read_values, comparisons=comparisons)
        for check, comparisons in COMPARISONS.items()
    },
}


def reader_of(check: str) -> Reader:
    """The reader of a check; one that finds nothing where it has none."""
    return READERS.get(check, _nothing)


def _nothing(_output: Output) -> Iterable[Found | Unread]:
    return ()
