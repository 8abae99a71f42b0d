"""Rules about claims: who relies on one at 3 a.m. must be able to see where it comes from."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from kb.contribute.lint.checked import CheckedFile
from kb.contribute.lint.rule import Rule
from kb.incident import Step
from kb.problem import Problem, Severity
from kb.questions.versions import read_specifier

_ANY = "any"
_TODAY = datetime.now(UTC).date()
_KEEPS = timedelta(days=365)
"""Age of a reading after which most projects of the field have had several releases."""
_SOURCE = re.compile(r"(?:format )?https?://\S+(?: https?://\S+)*|own run\b.*")
_SHELLS = frozenset({"sh", "bash", "shell", "console"})
_ANGLED = re.compile(r"(?<![<\w$&(])<[A-Za-z][\w .:/-]{0,60}>(?!>)")
"""A placeholder such as `<node>`."""
_QUOTED = re.compile(
    r"<<-?\s*(['\"]?)(\w+)\1[^\n]*\n.*?^[ \t]*\2$|'[^'\n]*'|\"[^\"\n]*\"", re.DOTALL | re.MULTILINE
)
"""What a shell takes as text: a document behind `<<`, or between quotes."""
_DESTROYS = re.compile(
    r"\brm\s+-\w*[rf]|\brsync\b(?![^\n]*--dry-run)[^\n]*--delete|\bmkfs\b|\bpkill\b|\bkillall\b"
    r"|\bkill\s+-(?:9|KILL)\b|--gpu-reset|\bnvidia-smi\b[^\n]* -r\b"
    r"|(?:^|[;&|] ?|sudo |systemctl )reboot\b|\brmmod\b|\bmodprobe\s+-r\b"
    r"|\bkubectl\s+(?:delete|drain)\b|\bscancel\b|\bgit\s+(?:reset\s+--hard|clean)\b"
    r"|\b(?:docker|podman)\s+(?:rm|kill|system\s+prune)\b|\bstate=down\b",
    re.IGNORECASE,
)
_SAYS_WHAT_IS_LOST = re.compile(
    r"\b(?:los[et]\w*|loses|kills?|deletes?|removes?|drops?|discards?|stops?|clears?|drain\w*"
    r"|ends? (?:it|them|the|all|every\w*|any|a)|destroys?|throws?|gone|idle|nobody"
    r"|no (?:running )?(?:jobs?|process(?:es)?)|rebuil[dt]\w*|again|processes stopped|finish(?:es)?"
    r"|everything|takes? away)\b",
    re.IGNORECASE,
)


class FixInWords(Rule):
    """`fixed_in` is a list of releases and changes, which programs can compare.

    kb asks for the version, and says when a version is past the fix. It can do that only with data.

    Wrong: `fixed_in: NCCL 2.22.3 or the pull request`

    Right:

    ```yaml
    fixed_in:
    - system: nccl
      version: '2.22.3'
      change: https://github.com/NVIDIA/nccl/pull/1234
      note: only with more than one NIC
    ```
    """

    code = "CLM951"
    severity = Severity.WARNING
    help = "write a list of system, version, change and note; docs/record-format.md shows one"

    def check(self, file: CheckedFile) -> Iterator[Problem]:
        if any(line.startswith("fixed_in: ") for line in file.lines):
            yield self.problem(file, "fixed_in: ", "the fix is a sentence, which nothing can check")


class VersionsInWords(Rule):
    """The versions of an environment are `any`, or a specifier as pip has it.

    They are the versions in which the incident happens. A log that states another one speaks
    against the record. What is not known exactly belongs in the section `Environment`, in words.

    Wrong: `pytorch: seen with 2.3, probably earlier`

    Right: `pytorch: '>=2.1,<2.5'`
    """

    code = "CLM952"
    severity = Severity.WARNING
    help = "write `any` or a specifier such as '>=2.1,<2.5'"

    def check(self, file: CheckedFile) -> Iterator[Problem]:
        for name, text in file.incident.header.environment.frameworks.items():
            if text != _ANY and read_specifier(text) is None:
                message = f"the versions of `{name}` are words, which nothing can compare"
                yield self.problem(file, f"  {name}: ", message)


class EvidenceWithoutSource(Rule):
    """Each block of evidence says where its lines come from.

    A block is a claim: a program prints this. Above it stands the page that shows the lines, the
    source file that prints them, or `own run` for a log of your own.

    Wrong: a fenced block with nothing above it.

    Right:

    ````markdown
    Source: https://github.com/NVIDIA/nccl/issues/290

    ```text
    NCCL WARN Call to connect failed
    ```

    Source: format https://github.com/NVIDIA/nccl/blob/v2.27.3-1/src/misc/socket.cc

    ```text
    NCCL WARN socketProgress: Connection closed by remote peer
    ```
    ````
    """

    code = "CLM953"
    severity = Severity.WARNING
    help = "write above it: Source: https://..., Source: format https://... or Source: own run"

    def check(self, file: CheckedFile) -> Iterator[Problem]:
        for block in file.incident.body.evidence:
            first = block.text.lstrip("\n").partition("\n")[0]
            if block.source is None:
                yield self.problem(file, first, "nothing says where these lines come from")
            elif not _SOURCE.fullmatch(block.source):
                yield self.problem(file, block.source, "this source is no link and no `own run`")


class OldReading(Rule):
    """A record that was compared with its sources long ago is compared again.

    Releases change what a program prints and which versions are concerned.

    Wrong: a date of two years ago under `checked`.

    Right: `kb verify nccl-ib-timeout --source nccl=../nccl`, and the new date under `checked`.
    """

    code = "CLM954"
    severity = Severity.WARNING
    help = "read its sources again, and write the date under `checked`"

    def check(self, file: CheckedFile) -> Iterator[Problem]:
        checked = file.incident.header.checked
        if checked and checked.date + _KEEPS < _TODAY:
            message = f"its claims were last compared with their sources on {checked.date}"
            yield self.problem(file, "checked:", message)


class UnwarnedLoss(Rule):
    """A step whose command deletes, kills or restarts something says what is lost.

    At 3 a.m. commands are copied without being read.

    Wrong:

    ````markdown
    1. Clean the cache.

       ```sh
       rm -rf ~/.triton/cache
       ```
    ````

    Right: the same with the sentence `All compiled kernels are lost; the next start compiles them
    again.`
    """

    code = "CLM955"
    severity = Severity.WARNING
    help = "say in the step what the command deletes, ends or restarts"

    def check(self, file: CheckedFile) -> Iterator[Problem]:
        for step in file.incident.body.fix:
            found = _DESTROYS.search(_without_comments(step))
            if found and not _SAYS_WHAT_IS_LOST.search(f"{step.text} {step.why or ''}"):
                message = f"`{found[0]}` destroys something, and the step does not say what"
                line = next(line for line in (step.command or "").split("\n") if found[0] in line)
                yield self.problem(file, line, message)


class CommandNotToCopy(Rule):
    """A command can be pasted as it stands: a shell or Python can read it.

    A shell takes `<node>` for a file to read from, and `<model> > out.log` writes to one. Python
    must be able to compile what is fenced as `python`.

    Wrong: `kubectl describe node <node> | grep nvidia.com/gpu`

    Right: `kubectl describe node NODE | grep nvidia.com/gpu`
    """

    code = "CLM956"
    severity = Severity.WARNING
    help = "write a placeholder in capitals, such as NODE, and fence what is no code as `text`"

    def check(self, file: CheckedFile) -> Iterator[Problem]:
        for step in file.incident.body.fix:
            command = step.command or ""
            if step.language in _SHELLS and (angled := _ANGLED.search(_QUOTED.sub("", command))):
                message = f"a shell takes `{angled[0]}` for a file"
                line = next(line for line in command.split("\n") if angled[0] in line)
                yield self.problem(file, line, message)
            elif step.language == "python" and (error := _syntax_error(command)):
                first = command.partition("\n")[0]
                yield self.problem(file, first, f"Python cannot read this: {error}")


def _syntax_error(code: str) -> str | None:
    """What Python says of an excerpt, which may stand in a loop of a function."""
    body = textwrap.indent(f"{code}\n", "  ")
    try:
        compile(f"async def excerpt():\n while True:\n{body}", "<step>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return str(error).partition(" (")[0]
    return None


def _without_comments(step: Step) -> str:
    lines = (step.command or "").split("\n")
    return "\n".join(line.partition(" #")[0] for line in lines if not line.startswith("#"))


CLAIM_RULES: tuple[Rule, ...] = (
    FixInWords(),
    VersionsInWords(),
    EvidenceWithoutSource(),
    OldReading(),
    UnwarnedLoss(),
    CommandNotToCopy(),
)
