"""What would be run, word by word: one program and its arguments a line, without a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import PurePath

import msgspec

from kb.check import Check, Command, Risk
from kb.errors import RunError
from kb.incident import Step

_SHELLS = frozenset({"sh", "bash"})
"""Languages of commands."""
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\$`]|\\[\"\\])*\"")
"""Quoted text in which a shell would put nothing else."""
_OBEYED = re.compile(r"[|&;<>()$`*?\[\]{}~#!\\'\"]")
"""What a shell obeys, outside of such quotes."""
_CONTINUED = re.compile(r"\s*\\\n\s*")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PLACEHOLDER = re.compile(r"(?:(?<=[=/:@])|^)[A-Z][A-Z0-9_]*[A-Z0-9](?=[/:@]|$)")
"""A word in capitals that stands for a value: PID, `/proc/PID/status`, `--pid=PID`."""
_OTHERS_RUN = re.compile(
    r"(?:ba|z|da|k|c|tc|fi)?sh|busybox|sudo|su|doas|runuser|env|xargs|nohup|setsid|chroot|nsenter"
    r"|unshare|ssh|rsh|srun|sbatch|salloc|clush|pdsh|mpirun|mpiexec|ansible|torchrun|exec|eval"
    r"|source|watch|parallel|script|systemd-run|flock|command|builtin"
)
"""Programs that run what their arguments say, here or on other hosts."""
_WRAPPERS = re.compile(r"timeout|time|nice|ionice|chrt|stdbuf|taskset|numactl|prlimit|[sl]trace")
"""Programs that run one other, which is looked at too."""
_IN_CONTAINERS = re.compile(r"kubectl|oc|docker|podman|nerdctl|crictl|apptainer|singularity")
_RUNS_THERE = frozenset({"exec", "run", "shell", "attach", "debug", "cp"})


class Plan(msgspec.Struct, frozen=True):
    """Programs with their arguments, one after the other."""

    lines: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        return "\n".join(map(shlex.join, self.lines))

    @property
    def placeholders(self) -> tuple[str, ...]:
        """Words in capitals that may stand for values of the job."""
        words = (word for line in self.lines for word in line[1:])
        return tuple(dict.fromkeys(found for word in words for found in _PLACEHOLDER.findall(word)))

    def filled(self, values: Mapping[str, str]) -> Plan:
        """With values in place of words; an empty value leaves the word as it is.

        Raises:
            RunError: a value would be an option, or holds what cannot be typed.
        """
        for word, value in values.items():
            if value.startswith("-") or not value.isprintable():
                raise RunError(
                    f"{word} cannot be '{value!a}': it begins with - or is no plain text"
                )
        return Plan(tuple(tuple(_filled(line, values)) for line in self.lines))


def plan_check(check: Check, command: Command) -> Plan:
    """How a check is run here.

    Raises:
        RunError: it is not read-only, or needs a shell.
    """
    if check.header.cost.risk is not Risk.READ_ONLY:
        raise RunError(
            f"{check.id} is not run from here, because it {_verb(check)}; copy the command"
        )
    return _planned(command.run, command.language)


def plan_step(step: Step) -> Plan:
    """How the command of a step is run here.

    Raises:
        RunError: its record does not mark it as read-only, or it needs a shell.
    """
    if step.command is None:
        raise RunError("this step has no command")
    if not step.read_only:
        raise RunError("its record does not mark this command as read-only; copy it")
    return _planned(step.command, step.language)


def _verb(check: Check) -> str:
    return check.header.cost.risk.in_words


def _planned(command: str, language: str) -> Plan:
    if language not in _SHELLS:
        raise RunError(f"this is {language or 'no command of a shell'}, which is not run; copy it")
    lines = (line for line in _CONTINUED.sub(" ", command).split("\n") if line.strip())
    return Plan(tuple(map(_words, lines)))


def _words(line: str) -> tuple[str, ...]:
    obeyed = _OBEYED.search(_QUOTED.sub("", line))
    if obeyed:
        raise RunError(f"this command needs a shell, because of `{obeyed[0]}`; copy it")
    words = tuple(shlex.split(line))
    program = PurePath(words[0]).name
    runs_there = _IN_CONTAINERS.fullmatch(program) and _RUNS_THERE.intersection(words[1:])
    looked_at = words if _WRAPPERS.fullmatch(program) else words[:1]
    runs_others = any(_OTHERS_RUN.fullmatch(PurePath(word).name) for word in looked_at)
    if runs_others or runs_there:
        raise RunError(f"{program} runs other commands, which is not done from here; copy it")
    if _ASSIGNMENT.match(words[0]):
        raise RunError("this command sets variables of a shell; copy it")
    return words


def _filled(line: tuple[str, ...], values: Mapping[str, str]) -> Iterator[str]:
    yield line[0]
    for word in line[1:]:
        yield _PLACEHOLDER.sub(lambda found: values.get(found[0]) or found[0], word)
