"""Rules about signatures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from index.documents import Pattern
from kb.contribute.lint.checked import CheckedFile
from kb.contribute.lint.context import LintContext
from kb.contribute.lint.rule import Rule
from kb.incident import Kind, Signature, Strength
from kb.markdown import as_written
from kb.problem import Problem

_MAX_RECORDS_MATCHED = 24
"""Number of other records whose evidence a signature may match: two dozen, as its page says."""
_MAX_RECORDS_NAMED = 3
"""Number of records named in one message."""
_MAX_ORDINARY_SHARE = 0.02
"""Share of the lines of a healthy log that a weak signature may match."""
_MAX_BEGINNING_SHARE = 0.10
"""Share of the lines of a healthy log that may contain the beginning of a pattern."""
_MIN_BEGINNING_CHARACTERS = 3
"""Length of a beginning that is checked; a shorter one is in many lines by chance."""
_ESCAPED = re.compile(r"\\([^\w\s])|([^\\.\[\](){}*+?|^$])")


class PatternGivenTwice(Rule):
    """A record lists each pattern only once.

    A duplicate adds no information and would count twice.

    Wrong:

    ```yaml
    signatures:
    - pattern: failed to extend /dev/shm/nccl-
      strength: strong
    - pattern: failed to extend /dev/shm/nccl-
      strength: weak
    ```

    Right: keep one of the two. `kb lint --fix` removes an exact duplicate.
    """

    code = "SIG202"
    help = "remove one of the two"

    def check(self, file: CheckedFile) -> Iterator[Problem]:
        seen: set[str] = set()
        for signature in file.incident.header.signatures:
            if signature.pattern in seen:
                message = f"duplicate pattern `{signature.pattern}`"
                yield _problem(self, file, signature, message)
            seen.add(signature.pattern)


class StrongPatternOfAnother(Rule):
    """A strong signature does not match another record's evidence.

    Strong means that one line with this text identifies the incident. If two records really share
    the line, make the signature weak in both and say in `Distinguish` how to tell them apart.
    Signatures of follow-on errors and noise are exempt, because such lines occur in any log.

    Wrong:

    ```yaml
    - pattern: CUDA out of memory
      strength: strong
    ```

    Right:

    ```yaml
    - pattern: Not enough memory. Please try to increase --mem-fraction-static
      strength: strong
    - pattern: CUDA out of memory
      strength: weak
    ```
    """

    code = "SIG203"
    help = "make the signature weak or more specific"

    def finish(self, context: LintContext) -> Iterator[Problem]:
        others: dict[Pattern, list[str]] = {}
        for file in context.files:
            for pattern in context.fired(_evidence(file)):
                others.setdefault(pattern, []).append(file.incident.id)
        for pattern, owners in _of_incidents(context).items():
            for owner, signature in owners:
                robbed = [i for i in others.get(pattern, ()) if i != owner.incident.id]
                if robbed and signature.strength is Strength.STRONG:
                    fires = f"matches the evidence of {_named(robbed)}"
                    yield _problem(self, owner, signature, f"this strong signature {fires}")


class FiresOnOrdinaryLog(Rule):
    r"""A signature of an incident does not match the output of healthy programs.

    The linter has a sample of healthy logs: training steps, NCCL startup, servers that answer
    requests. A strong signature must not match any line of it, because then every healthy job would
    look like an incident. A weak signature may match a startup line (a hang often prints nothing
    else), but no line that programs print all the time.

    Wrong:

    ```yaml
    - pattern: tokens/s
      strength: weak
    ```

    Right: use text that a healthy run does not print, such as

    ```yaml
    - pattern: 'tokens/s: 0\.0, Running: [1-9]\d* reqs'
      strength: weak
      regex: true
    ```
    """

    code = "SIG204"
    help = "use a pattern that a healthy run does not print"

    def finish(self, context: LintContext) -> Iterator[Problem]:
        lines = ordinary_lines()
        seen = Counter(pattern for line in lines for pattern in context.fired(line))
        declared = _of_incidents(context)
        for pattern, count in seen.items():
            for file, signature in declared.get(pattern, ()):
                strong = signature.strength is Strength.STRONG
                if strong or count > _MAX_ORDINARY_SHARE * len(lines):
                    fires = f"matches {count} lines of a healthy log"
                    yield _problem(
                        self, file, signature, f"this {signature.strength} signature {fires}"
                    )


class FiresOnManyRecords(Rule):
    """A signature of an incident does not match the evidence of many other records.

    A pattern that two dozen other records print too distinguishes nothing. It slows down every scan
    and appears as a reason without being one.

    Wrong:

    ```yaml
    - pattern: RuntimeError
      strength: weak
    ```

    Right: extend the pattern to the part of the line that is specific to this incident, such as
    `RuntimeError: The size of tensor a`.
    """

    code = "SIG205"
    help = "extend the pattern to a part of the line that few other causes print"

    def finish(self, context: LintContext) -> Iterator[Problem]:
        fired = Counter(
            pattern for other in context.files for pattern in context.fired(_evidence(other))
        )
        for pattern, owners in _of_incidents(context).items():
            for file, signature in owners:
                others = fired[pattern] - (pattern in context.fired(_evidence(file)))
                if others > _MAX_RECORDS_MATCHED:
                    fires = f"matches the evidence of {others} other records"
                    yield _problem(self, file, signature, f"this signature {fires}")


class FrequentBeginning(Rule):
    """A regular expression does not begin with a word that is common in ordinary logs.

    kb scans gigabytes of logs for all signatures at once, and this is fast only while the first
    letters of the patterns are rare. Wherever a pattern starts to match, the scanner has to look
    closer: one pattern that began with `loss` halved the speed of every scan. The rule counts the
    lines of the linter's healthy log that contain the literal text at the start of the pattern.

    Wrong:

    ```yaml
    - pattern: 'loss.*became nan'
      strength: weak
      regex: true
    ```

    Right: begin with the rare part and drop the text before it.

    ```yaml
    - pattern: became nan
      strength: weak
    ```
    """

    code = "SIG206"
    help = "begin the pattern with its rarest word"

    def check(self, file: CheckedFile) -> Iterator[Problem]:
        lines = ordinary_lines()
        for signature in file.incident.header.signatures:
            word = beginning(signature.pattern) if signature.regex else ""
            count = (
                sum(word in line for line in lines) if len(word) >= _MIN_BEGINNING_CHARACTERS else 0
            )
            if count > _MAX_BEGINNING_SHARE * len(lines):
                share = f"{count} of {len(lines)} lines of a healthy log"
                yield _problem(self, file, signature, f"its first word `{word}` is in {share}")


SIGNATURE_RULES: tuple[Rule, ...] = (
    PatternGivenTwice(),
    StrongPatternOfAnother(),
    FiresOnOrdinaryLog(),
    FiresOnManyRecords(),
    FrequentBeginning(),
)


def beginning(pattern: str) -> str:
    """The letters with which every match of a regular expression begins."""
    letters, place = "", 0
    while match := _ESCAPED.match(pattern, place):
        place = match.end()
        if pattern[place : place + 1] in ("*", "?", "{"):
            break
        letters += match[1] or match[2]
        if pattern[place : place + 1] == "+":
            break
    return letters


@cache
def ordinary_lines() -> tuple[str, ...]:
    """Lines of healthy programs."""
    text = Path(__file__).with_name("ordinary.log").read_text(encoding="utf-8")
    return tuple(text.splitlines())


def _of_incidents(context: LintContext) -> dict[Pattern, list[tuple[CheckedFile, Signature]]]:
    """The chosen incidents that declare a pattern."""
    declared: dict[Pattern, list[tuple[CheckedFile, Signature]]] = {}
    for file in context.chosen:
        if file.incident.kind is Kind.INCIDENT:
            for signature in file.incident.header.signatures:
                pattern = Pattern(signature.pattern, signature.regex)
                declared.setdefault(pattern, []).append((file, signature))
    return declared


def _named(identifiers: list[str]) -> str:
    named = ", ".join(f"`{identifier}`" for identifier in identifiers[:_MAX_RECORDS_NAMED])
    others = len(identifiers) - _MAX_RECORDS_NAMED
    return f"{named} and of {others} others" if others > 0 else named


def _evidence(file: CheckedFile) -> str:
    return file.incident.body.evidence_text


def _problem(rule: Rule, file: CheckedFile, signature: Signature, message: str) -> Problem:
    return rule.problem(file, as_written(signature.pattern, file.lines), message)
