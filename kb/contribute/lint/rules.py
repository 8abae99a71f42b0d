"""Rules about signatures, links and drafts that need nothing but the files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from index.documents import Pattern
from index.signatures import Scanner
from kb.contribute.blanks import find_blanks
from kb.contribute.lint.checked import CheckedFile
from kb.contribute.lint.corpus import Corpus
from kb.contribute.lint.rule import Rule
from kb.incident import Kind, Signature, Strength
from kb.markdown import as_written
from kb.problem import Problem


class PatternGivenTwice(Rule):
    """A record gives each pattern once: a second one would count double."""

    code = "SIG202"
    help = "remove one of the two"

    def check(self, file: CheckedFile) -> Iterator[Problem]:
        seen: set[str] = set()
        for signature in file.incident.header.signatures:
            if signature.pattern in seen:
                yield self.problem(
                    file,
                    as_written(signature.pattern, file.lines),
                    f"the pattern `{signature.pattern}` is given twice",
                )
            seen.add(signature.pattern)


class StrongPatternOfAnother(Rule):
    """A strong signature names its incident, so it must not fire on another record's evidence.

    Where two records really share the line, the signature is weak in both, and `Distinguish` says
    how to tell them apart. Follow-on errors and noise stand in anybody's log.
    """

    code = "SIG203"
    help = "make the signature weak, or more specific"

    def finish(self, corpus: Corpus) -> Iterator[Problem]:
        strong = [
            (file, signature)
            for file in corpus.chosen
            if file.incident.kind is Kind.INCIDENT
            for signature in file.incident.header.signatures
            if signature.strength is Strength.STRONG
        ]
        scanner = Scanner([_pattern(signature) for _file, signature in strong])
        for other in corpus.files:
            text = "\n".join(other.incident.body.evidence).encode()
            for number in sorted({number for number, _end in scanner.scan(text)}):
                owner, signature = strong[number]
                if owner.incident.id != other.incident.id:
                    yield self.problem(
                        owner,
                        as_written(signature.pattern, owner.lines),
                        f"this strong signature fires on the evidence of `{other.incident.id}`",
                    )


class UnknownIncident(Rule):
    """`Distinguish` names records by id, so that the tool can ask what tells them apart."""

    code = "IDS402"
    help = "use an id that `kb list` shows"

    def finish(self, corpus: Corpus) -> Iterator[Problem]:
        known = {file.incident.id for file in corpus.files}
        for file in corpus.files:
            for item in file.incident.body.distinguish:
                if item.other not in known:
                    yield self.problem(
                        file, f"`{item.other}`:", f"there is no incident `{item.other}`"
                    )


class DistinguishedFromItself(Rule):
    """A record is told from others, not from itself."""

    code = "IDS403"
    help = "name the other incident"

    def check(self, file: CheckedFile) -> Iterable[Problem]:
        return [
            self.problem(file, f"`{item.other}`:", "a record is distinguished from itself")
            for item in file.incident.body.distinguish
            if item.other == file.incident.id
        ]


class OneSidedDistinction(Rule):
    """Two look-alikes name each other: whichever comes first, the tool can ask what tells them
    apart."""

    code = "IDS404"
    help = "add a question to `Distinguish` of the other record, for which yes speaks for it"

    def finish(self, corpus: Corpus) -> Iterator[Problem]:
        told = {
            file.incident.id: {item.other for item in file.incident.body.distinguish}
            for file in corpus.files
        }
        for file in corpus.files:
            for item in file.incident.body.distinguish:
                if item.other in told and file.incident.id not in told[item.other]:
                    yield self.problem(
                        file,
                        f"`{item.other}`:",
                        f"`{item.other}` does not say how it is told from `{file.incident.id}`",
                    )


class Unfinished(Rule):
    """A draft of `kb new` marks what only a person can know with `TODO:`, so that it is not taken
    for knowledge before somebody has written it."""

    code = "DFT501"
    help = "write it, and remove the mark `TODO:`"

    def check(self, file: CheckedFile) -> Iterator[Problem]:
        for blank in find_blanks(file.lines):
            yield Problem(
                file.name,
                blank.line,
                self.code,
                f"`{blank.where}` is not written yet: {blank.what}",
                self.help,
                file.lines[blank.line - 1].strip()[:100],
            )


RULES: tuple[Rule, ...] = (
    PatternGivenTwice(),
    StrongPatternOfAnother(),
    UnknownIncident(),
    DistinguishedFromItself(),
    OneSidedDistinction(),
    Unfinished(),
)


def _pattern(signature: Signature) -> Pattern:
    return Pattern(signature.pattern, signature.regex)
