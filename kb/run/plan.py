"""What would be run, word by word: programs and their arguments, one after the other or piped into
each other, without a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import PurePath

import msgspec

from kb.check import Check, Command, Risk
from kb.errors import RunError
from kb.incident import Step

_SHELLS = frozenset({"sh", "bash"})
"""Languages of commands."""
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\$`]|\\[\"\\])*\"")
"""Quoted text in which a shell would put nothing else."""
_ERRORS = re.compile(r"(?<!\S)2>(/dev/null|&1)(?![^\s;|])")
"""Where the errors of a program go, outside of such quotes."""
_OBEYED = re.compile(r"\|\||[&<>()$`*?\[\]{}~#!\\'\"]")
"""What a shell obeys beside `;` and `|`, outside of such quotes."""
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


class Errors(StrEnum):
    """Where the errors of a program go."""

    SHOWN = ""
    DROPPED = " 2>/dev/null"
    PIPED = " 2>&1"
    """With its output, to the next program."""


class Program(msgspec.Struct, frozen=True):
    """One program."""

    words: tuple[str, ...]
    """Its name and its arguments."""
    errors: Errors = Errors.SHOWN

    def __str__(self) -> str:
        return shlex.join(self.words) + self.errors

    def filled(self, values: Mapping[str, str]) -> Program:
        """With values in place of words."""
        name, *arguments = self.words

        def value(found: re.Match[str]) -> str:
            return values.get(found[0]) or found[0]

        filled = (_PLACEHOLDER.sub(value, word) for word in arguments)
        return Program((name, *filled), self.errors)


Line = tuple[Program, ...]
"""Each program reads what the one before it prints."""


class Plan(msgspec.Struct, frozen=True):
    """Lines that are run one after the other."""

    lines: tuple[Line, ...]

    def __str__(self) -> str:
        return "\n".join(map(as_typed, self.lines))

    @property
    def programs(self) -> Iterator[Program]:
        """All of them, in order."""
        return (program for line in self.lines for program in line)

    @property
    def placeholders(self) -> tuple[str, ...]:
        """Words in capitals that may stand for values of the job."""
        words = (word for program in self.programs for word in program.words[1:])
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
        return Plan(tuple(tuple(one.filled(values) for one in line) for line in self.lines))


def as_typed(line: Line) -> str:
    """A line as it would be typed into a shell."""
    return " | ".join(map(str, line))


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
    typed = _CONTINUED.sub(" ", command).split("\n")
    return Plan(tuple(line for text in typed for line in _lines(text)))


def _lines(typed: str) -> Iterator[Line]:
    """Those that `;` divides."""
    shape = _QUOTED.sub(lambda quoted: "q" * len(quoted[0]), typed)
    obeyed = _OBEYED.search(_ERRORS.sub("", shape))
    if obeyed:
        raise RunError(f"this command needs a shell, because of `{obeyed[0]}`; copy it")
    for line, its_shape in _cut(typed, shape, ";"):
        if line.strip():
            yield tuple(_program(*program) for program in _cut(line, its_shape, "|"))


def _cut(text: str, shape: str, sign: str) -> Iterator[tuple[str, str]]:
    """A text and its shape at each sign of the shape."""
    start = 0
    for part in shape.split(sign):
        yield text[start : start + len(part)], part
        start += len(part) + 1


def _program(text: str, shape: str) -> Program:
    errors = list(_ERRORS.finditer(shape))
    for found in reversed(errors):
        text = text[: found.start()] + text[found.end() :]
    return Program(_words(text), Errors(f" {errors[-1][0]}") if errors else Errors.SHOWN)


def _words(text: str) -> tuple[str, ...]:
    words = tuple(shlex.split(text))
    if not words:
        raise RunError("this command needs a shell, because of `|`; copy it")
    program = PurePath(words[0]).name
    runs_there = _IN_CONTAINERS.fullmatch(program) and _RUNS_THERE.intersection(words[1:])
    looked_at = words if _WRAPPERS.fullmatch(program) else words[:1]
    runs_others = any(_OTHERS_RUN.fullmatch(PurePath(word).name) for word in looked_at)
    if runs_others or runs_there:
        raise RunError(f"{program} runs other commands, which is not done from here; copy it")
    if _ASSIGNMENT.match(words[0]):
        raise RunError("this command sets variables of a shell; copy it")
    return words
