"""Rules about prose: a tired person at 3 a.m. must understand it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from index.documents import Pattern
from kb.contribute.lint.checked import CheckedFile, CheckedText
from kb.contribute.lint.context import LintContext
from kb.contribute.lint.rule import Rule, TextRule
from kb.contribute.todo_marks import MARK, find_blanks
from kb.evidence.glossary import has_chinese
from kb.incident import Kind
from kb.problem import Problem, Severity
from kb.rules import read_words

_MIN_ALIASES = 5
"""Number of aliases of a record, as its page says."""
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
_CODE = re.compile(r"`[^`]*`")
_BARE = re.compile(
    r"(?:please )?(?:check|look at|see|inspect|read|examine|review|investigate|debug|consult)"
    r"(?: (?:the|your|all|any|its|each|every|system|job|application|server|error|relevant|full))*"
    r" (?:logs?|log files?|output|configurations?|settings?|documentation|docs|environment|network"
    r"|hardware|cluster|system|issue|problem|errors?|details|code|status)"
    r"(?: (?:for|of) (?:the |any |more )?"
    r"(?:errors?|details|information|issues?|problems?|clues?|hints?|cause))?",
    re.IGNORECASE,
)


class StepWithoutVerb(Rule):
    """A step of `## Fix` is an instruction.

    A tired reader follows a step without interpreting it. So a step begins with a verb, or with a
    condition followed by a verb. Explanations (`Because ...`, `The ...`) belong in the paragraph
    below the step. (The linter knows about 450 verbs; an unknown verb is only a warning.)

    Wrong:

    ```markdown
    1. Larger shared memory for the container.
    ```

    Right:

    ```markdown
    1. Restart the container with a larger shared memory mount.
    ```
    """

    code = "PRO601"
    severity = Severity.WARNING
    help = "begin with a verb (Restart ..., Set ...), or with a condition (If ..., restart ...)"

    def check(self, file: CheckedFile) -> Iterator[Problem]:
        for number, step in enumerate(file.incident.body.fix, 1):
            is_written = MARK not in step.text and not has_chinese(step.text)
            if is_written and not says_what_to_do(step.text):
                start = f"{number}. {step.text.partition(chr(10))[0]}"
                yield self.problem(file, start, "this step does not say what to do")


class BareStep(Rule):
    """A step says what to look for, with which command, and how to read the output.

    The reader has already checked the logs, so "Check the logs" does not help.

    Wrong:

    ```markdown
    1. Check the logs for errors.
    ```

    Right:

    ````markdown
    1. Look for the first Xid in the kernel log of the node.

       ```sh
       dmesg -T | grep Xid | head -1
       ```

       Xid 79 means that the GPU has fallen off the bus.
    ````
    """

    code = "PRO602"
    help = "say which lines to look for, with which command, and what they mean"

    def check(self, file: CheckedFile) -> Iterator[Problem]:
        for step in file.incident.body.fix:
            if (
                step.command is None
                and step.why is None
                and _BARE.fullmatch(step.text.rstrip(" ."))
            ):
                message = "this step says neither what to look for nor how"
                yield self.problem(file, step.text, message)


class MissingCaution(Rule):
    """A record whose signature also matches another incident's output has a `caution`.

    The caution is shown next to the confidence. It is one sentence about what a match does *not*
    prove, so that nobody drains a node because of a line that two causes print.

    Wrong: `pattern: Too many open files` in two records, and no `caution` in one of them.

    Right:

    ```yaml
    caution: The system-wide limit and the per-process limit print the same line.
    ```
    """

    code = "PRO603"
    help = "add `caution`: one sentence about what a match does not prove"

    def finish(self, context: LintContext) -> Iterator[Problem]:
        prints = [
            (file.incident.id, context.fired(file.incident.body.evidence_text))
            for file in context.files
            if file.incident.kind is Kind.INCIDENT
        ]
        for file in context.chosen:
            incident = file.incident
            if incident.kind is Kind.INCIDENT and incident.header.caution is None:
                own = {Pattern(one.pattern, one.regex) for one in incident.header.signatures}
                for other, fired in prints:
                    if other != incident.id and (shared := own & fired):
                        printed = f"`{other}` prints `{min(one.text for one in shared)}` too"
                        yield self.problem(
                            file, "signatures:", f"{printed}, but the record has no caution"
                        )
                        break


class FewAliases(Rule):
    """A record has at least five aliases: the symptom as users would type it.

    Users without a log describe the problem in their own words and language. Aliases let such a
    question find the record; title and text use the words of people who already know the cause.

    Wrong:

    ```yaml
    aliases:
    - NCCL shared memory error
    ```

    Right:

    ```yaml
    aliases:
    - nccl says no space left on device but the disk is empty
    - training in docker dies with shm error
    - posix_fallocate failed at startup of 8 gpus
    - 容器里多卡训练报 No space left on device
    - docker 里 NCCL 共享内存不够
    ```
    """

    code = "PRO604"
    severity = Severity.WARNING
    help = "add phrases that a colleague would type, some in Chinese if possible"

    def check(self, file: CheckedFile) -> Iterator[Problem]:
        aliases = file.incident.header.aliases
        if len(aliases) < _MIN_ALIASES and not any(MARK in alias for alias in aliases):
            said = f"the record has only {len(aliases)} aliases"
            yield self.problem(file, "aliases:", said)


class Unfinished(TextRule):
    """The record contains no `TODO:` marks.

    `kb new` marks the parts that only a person can write with `TODO:`, so that an unfinished draft
    is not used as a record.

    Wrong:

    ```markdown
    ## Verify

    TODO: how to see that it is fixed
    ```

    Right:

    ```markdown
    ## Verify

    The first step is printed within a minute of the start.
    ```
    """

    code = "DFT501"
    help = "write this part and remove `TODO:`"

    def check(self, file: CheckedText) -> Iterator[Problem]:
        for blank in find_blanks(file.lines):
            yield Problem(
                file.name,
                blank.line,
                self.code,
                f"`{blank.where}` still has a TODO: {blank.what}",
                self.help,
                file.lines[blank.line - 1].strip()[:100],
            )


PROSE_RULES: tuple[Rule, ...] = (
    StepWithoutVerb(),
    BareStep(),
    MissingCaution(),
    FewAliases(),
    Unfinished(),
)


def says_what_to_do(step: str) -> bool:
    """Whether a step, or what stands behind a colon in it, begins with a verb, or with when, where
    or for whom it holds and has a verb later."""
    parts = re.split(r":\s", _CODE.sub("", step))
    return any(_is_imperative(_WORD.findall(part.lower())) for part in parts)


def _is_imperative(words: list[str]) -> bool:
    first = words[0] if words else ""
    verbs = read_words("verbs", "verbs")
    return first in verbs or (
        first in read_words("verbs", "conditions") and not verbs.isdisjoint(words)
    )
