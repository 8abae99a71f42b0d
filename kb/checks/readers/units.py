"""Services of systemd: `systemctl status` and `systemctl --failed`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.checks.model import Found, Output, Reader

_UNIT = re.compile(r"^[●○×↻*x] (\S{1,100})\.service - ")
_ACTIVE = re.compile(r"^ *Active: (failed|inactive|activating \(auto-restart\))")
_LISTED = re.compile(r"^[●×*]? *(\S{1,100})\.service +loaded +(failed) +failed\b")
_OTHER_CHECK = "nvidia-fabricmanager"

_FINDINGS = {
    "chrony": "time-service-down",
    "chronyd": "time-service-down",
    "containerd": "node-agent-down",
    "crio": "node-agent-down",
    "docker": "node-agent-down",
    "kubelet": "node-agent-down",
    "munge": "munge-down",
    "ntp": "time-service-down",
    "ntpd": "time-service-down",
    "nvidia-persistenced": "persistence-down",
    "slurmctld": "slurm-down",
    "slurmd": "slurm-down",
    "slurmdbd": "slurm-down",
    "systemd-timesyncd": "time-service-down",
}
"""By the unit; `unit-down` for all others."""
_SAID = {
    "failed": "has failed",
    "inactive": "does not run",
    "activating (auto-restart)": "ends and is started again and again",
}


def read_units(output: Output) -> Iterator[Found]:
    """Services that have failed or do not run."""
    unit = ""
    for row, line in enumerate(output.lines):
        if named := _UNIT.match(line):
            unit = named[1]
        elif listed := _LISTED.match(line):
            yield from _down(listed[1], listed[2], row)
        elif unit and (state := _ACTIVE.match(line)):
            yield from _down(unit, state[1], row)
            unit = ""


def _down(unit: str, state: str, row: int) -> Iterator[Found]:
    if unit != _OTHER_CHECK:
        yield Found(_FINDINGS.get(unit, "unit-down"), f"{unit} {_SAID[state]}.", row)


READERS: dict[str, Reader] = {"systemctl-status": read_units}
"""By the id of the check."""
