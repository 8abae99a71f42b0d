"""Rules about signatures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files

from index.documents import Pattern
from index.signatures import Scanner
from kb.contribute.lint.checked import CheckedFile
from kb.contribute.lint.corpus import Corpus
from kb.contribute.lint.rule import Rule
from kb.incident import Kind, Signature, Strength
from kb.markdown import as_written
from kb.problem import Problem

_MOST_RECORDS = 24
_MOST_ORDINARY = 0.02
_FREQUENT = 0.10
_LEAST_BEGINNING = 3
_ESCAPED = re.compile(r"\\([^\w\s])|([^\\.\[\](){}*+?|^$])")


class PatternGivenTwice(Rule):
    """A record gives each pattern once.

    A second one says nothing new, and would count double.

    Wrong:

    ```yaml
    signatures:
    - pattern: failed to extend /dev/shm/nccl-
      strength: strong
    - pattern: failed to extend /dev/shm/nccl-
      strength: weak
    ```

    Right: keep one of the two. `kb lint --fix` removes the second where both say the same.
    """

    code = "SIG202"
    help = "remove one of the two"

    def check(self, file: CheckedFile) -> Iterator[Problem]:
        seen: set[str] = set()
        for signature in file.incident.header.signatures:
            if signature.pattern in seen:
                message = f"the pattern `{signature.pattern}` is given twice"
                yield _problem(self, file, signature, message)
            seen.add(signature.pattern)


class StrongPatternOfAnother(Rule):
    """A strong signature must not fire on another record's evidence.

    Strong means: a line with this text is enough to name the incident. Where two records really
    share the line, the signature is weak in both, and `Distinguish` says how to tell them apart.
    Follow-on errors and noise stand in anybody's log, so their signatures may fire anywhere.

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
    help = "make the signature weak, or more specific"

    def finish(self, corpus: Corpus) -> Iterator[Problem]:
        strong = [pair for pair in _of_incidents(corpus) if pair[1].strength is Strength.STRONG]
        scanner = _scanner(strong)
        for other in corpus.files:
            for number in sorted({number for number, _end in scanner.scan(_evidence(other))}):
                owner, signature = strong[number]
                if owner.incident.id != other.incident.id:
                    message = (
                        f"this strong signature fires on the evidence of `{other.incident.id}`"
                    )
                    yield _problem(self, owner, signature, message)


class FiresOnOrdinaryLog(Rule):
    r"""A signature of an incident must not fire on what healthy programs print.

    The linter has an ordinary log: training steps, NCCL's start, servers that answer requests. A
    strong signature that fires on any line of it would make an incident of every healthy job. A
    weak one may be a line of a start that went well (a hang shows nothing else), but not one of
    those that a program prints all the time.

    Wrong:

    ```yaml
    - pattern: tokens/s
      strength: weak
    ```

    Right: take the line that differs from a healthy run, such as

    ```yaml
    - pattern: 'tokens/s: 0\.0, Running: [1-9]\d* reqs'
      strength: weak
      regex: true
    ```
    """

    code = "SIG204"
    help = "take a pattern that a healthy run does not print"

    def finish(self, corpus: Corpus) -> Iterator[Problem]:
        signatures = list(_of_incidents(corpus))
        scanner, lines = _scanner(signatures), _ordinary()
        seen = Counter(n for line in lines for n, _end in scanner.scan(line.encode()))
        for number, count in sorted(seen.items()):
            file, signature = signatures[number]
            strong = signature.strength is Strength.STRONG
            if strong or count > _MOST_ORDINARY * len(lines):
                message = (
                    f"this {signature.strength} signature fires on {count} lines of a healthy log"
                )
                yield _problem(self, file, signature, message)


class FiresOnManyRecords(Rule):
    """A signature of an incident must not fire on the evidence of a large part of all records.

    What two dozen other records print as well tells nothing apart; it costs time in every scan and
    stands as a reason that is none.

    Wrong:

    ```yaml
    - pattern: RuntimeError
      strength: weak
    ```

    Right: go on to where the line becomes that of this incident, such as
    `RuntimeError: The size of tensor a`.
    """

    code = "SIG205"
    help = "go on to the part of the line that few other causes print"

    def finish(self, corpus: Corpus) -> Iterator[Problem]:
        signatures = list(_of_incidents(corpus))
        scanner = _scanner(signatures)
        others = Counter(
            number
            for other in corpus.files
            for number, _end in scanner.scan(_evidence(other))
            if signatures[number][0].incident.id != other.incident.id
        )
        for number, count in sorted(others.items()):
            if count > _MOST_RECORDS:
                message = f"this signature fires on the evidence of {count} other records"
                yield _problem(self, *signatures[number], message)


class FrequentBeginning(Rule):
    """A regular expression must not begin with a word that ordinary logs are full of.

    Logs of gigabytes are scanned for all signatures at once, at the speed of memory as long as
    their first letters are rare. At each place where a pattern begins to match, the scanner has to
    go on looking: one pattern that began with `loss` halved the speed of every scan. What counts is
    how many lines of the linter's ordinary log hold the letters before the first special one.

    Wrong:

    ```yaml
    - pattern: 'loss.*became nan'
      strength: weak
      regex: true
    ```

    Right: begin with the rare part, or write it without what stands in front.

    ```yaml
    - pattern: became nan
      strength: weak
    ```
    """

    code = "SIG206"
    help = "begin the pattern with its rarest word"

    def check(self, file: CheckedFile) -> Iterator[Problem]:
        lines = _ordinary()
        for signature in file.incident.header.signatures:
            word = beginning(signature.pattern) if signature.regex else ""
            count = sum(word in line for line in lines) if len(word) >= _LEAST_BEGINNING else 0
            if count > _FREQUENT * len(lines):
                share = f"{count} of {len(lines)} lines of an ordinary log"
                yield _problem(self, file, signature, f"`{word}`, its beginning, is in {share}")


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
def _ordinary() -> tuple[str, ...]:
    """Lines of healthy programs."""
    text = files("kb.contribute.lint").joinpath("ordinary.log").read_text(encoding="utf-8")
    return tuple(text.splitlines())


def _of_incidents(corpus: Corpus) -> Iterator[tuple[CheckedFile, Signature]]:
    for file in corpus.chosen:
        if file.incident.kind is Kind.INCIDENT:
            for signature in file.incident.header.signatures:
                yield file, signature


def _scanner(signatures: Sequence[tuple[CheckedFile, Signature]]) -> Scanner:
    return Scanner([Pattern(one.pattern, one.regex) for _file, one in signatures])


def _evidence(file: CheckedFile) -> bytes:
    return "\n".join(file.incident.body.evidence).encode()


def _problem(rule: Rule, file: CheckedFile, signature: Signature, message: str) -> Problem:
    return rule.problem(file, as_written(signature.pattern, file.lines), message)
