"""What a script must know of the command of a check before it runs it."""

from __future__ import annotations

import re

VALUES = (
    *("BAD_ENV", "BDF", "CKPT", "CONTAINER", "DUMPDIR", "GOOD_ENV", "HEADPOD", "HOST", "HOSTPID"),
    *("IFACE", "IP_A", "IP_B", "JOBID", "JOBLABEL", "LIBRARY", "LOGS", "LOSS", "MASTER_ADDR"),
    *("MASTER_SERVICE", "MODEL", "MODULE", "MOUNT", "NODE", "NODES", "NODE_A", "NODE_B", "NS"),
    *("PATH", "PEER_IP", "PID", "POD", "POD_A", "POD_B", "PROMPT", "SCRIPT", "SERVER"),
)
"""The words in capitals that stand for values of the job; docs/check-format.md lists them. Any
other word is itself: commands are full of `NVRM` and `LD_LIBRARY_PATH`."""

FOUND = frozenset({"HOST", "IFACE", "JOBID", "NODE", "PID", "SCRIPT"})
"""The values that the script finds on a host; others a person gives."""

_VALUE = re.compile(rf"(?<![\w$])(?:{'|'.join(sorted(VALUES, key=len, reverse=True))})(?![\w=])")

_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*\"""")
_START = re.compile(r"(?:^|[;|&(\n]|\b(?:do|then|else)\b)\s*")
"""Where a command may begin."""
_BEFORE = re.compile(r"(?:(?:sudo|env|timeout (?:-\S+ )*\S+|[A-Za-z_]\w*=\S*)\s+)*")
"""What may stand in front of the name of a command."""
_NAME = re.compile(r"[A-Za-z_][\w.+-]*(?![\w.+-]|=)")

_SHOW = frozenset({"cat", "grep", "head", "ls", "tail", "uname"})
"""What every machine has, and what shows something by itself."""
_HELP = frozenset(
    "awk basename bash cd cut date dirname do done echo else env esac exit export false fi for"
    " hostname id if in kill mount nproc pgrep printf read sed seq set sh sleep sort stat test then"
    " timeout tr true uniq wc while xargs".split()
)
"""What every machine has, and what shows nothing without another command."""


def values_of(command: str) -> tuple[str, ...]:
    """The words that stand for values of the user's job, each once."""
    return tuple(dict.fromkeys(_VALUE.findall(command)))


def with_marks(command: str) -> str:
    """The command with its values as `@PID@`."""
    return _VALUE.sub(lambda match: f"@{match[0]}@", command)


def tool_of(command: str) -> str | None:
    """The program without which the command shows nothing; None where any machine has it."""
    text = _QUOTED.sub("''", command)
    for start in _START.finditer(text):
        before = _BEFORE.match(text, start.end())
        name = _NAME.match(text, before.end() if before else start.end())
        if name and name[0] not in _HELP:
            return None if name[0] in _SHOW else name[0]
    return None
