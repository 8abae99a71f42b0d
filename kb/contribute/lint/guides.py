"""Rules about checks and playbooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from index.documents import Pattern
from index.signatures import Scanner
from kb.check import Check, Finding
from kb.contribute.lint.checked import CheckedGuide, GuideLibrary
from kb.contribute.lint.rule import GuideRule
from kb.contribute.lint.signatures import ordinary_lines
from kb.corpus.guide_document import declared_by
from kb.guides import Guide
from kb.markdown import as_written
from kb.playbook import Playbook
from kb.problem import Problem


class OutputNotRecognised(GuideRule):
    """A check recognises its own outputs.

    A pasted output is read by the check whose `recognise` patterns it matches. So at least one of
    them matches the block under `## Normal`, and at least one matches the example of each finding.
    An example therefore includes a line by which one sees where it comes from.

    Wrong: `recognise` matches the first line of the output, and an example leaves that line out.

    ```text
    100% /dev/shm
    ```

    Right:

    ```text
    tmpfs           126G  126G   12M 100% /dev/shm
    ```
    """

    code = "CHK901"
    help = "add the line by which the output is known, or a pattern to `recognise`"

    def check(self, file: CheckedGuide) -> Iterator[Problem]:
        if not isinstance(file.guide, Check):
            return
        scanner = Scanner(declared_by(file.guide))
        for what, text in _outputs(file.guide):
            if not scanner.scan(text.encode()):
                yield self.problem(file, _first(text), f"the check does not recognise {what}")


class ExampleWithoutFinding(GuideRule):
    """The example of a finding has the finding.

    The pattern of a finding matches its example. With a `rule` it captures the values that the rule
    compares, so it matches as well.

    Wrong:

    ````markdown
    - pattern: `(?m)^Link detected: no$`

    ```text
        Link detected: no
    ```
    ````

    Right:

    ````markdown
    - pattern: `(?m)^\\s*Link detected: no$`

    ```text
        Link detected: no
    ```
    ````
    """

    code = "CHK902"
    help = "correct the pattern, or show an example in which it is found"

    def check(self, file: CheckedGuide) -> Iterator[Problem]:
        if not isinstance(file.guide, Check):
            return
        findings = file.guide.body.findings
        for finding in findings:
            example = finding.example if finding.pattern else None
            if example and finding.id not in _having(findings, example):
                message = f"the pattern of `{finding.id}` does not match its example"
                yield self.problem(file, f"### {finding.id}", message)


class NormalWithFault(GuideRule):
    """The normal output of a check has no fault.

    The block under `## Normal` is the output of a healthy machine. No finding without a `rule`
    matches it, unless it says `abnormal: no`.

    Wrong: a finding with the pattern `Link detected:`, which stands in every output.

    Right: `(?m)^\\s*Link detected: no$`.
    """

    code = "CHK903"
    help = "make the pattern more specific, or write `- abnormal: no`"

    def check(self, file: CheckedGuide) -> Iterator[Problem]:
        if not isinstance(file.guide, Check):
            return
        findings = file.guide.body.findings
        found = _having(findings, file.guide.body.normal)
        for finding in findings:
            if finding.abnormal and finding.rule is None and finding.id in found:
                message = f"the finding `{finding.id}` is in the normal output"
                yield self.problem(file, f"### {finding.id}", message)


class GuideFiresOnOrdinaryLog(GuideRule):
    """Neither the output of a check nor the lines of a symptom are found in a healthy log.

    Otherwise every log of a healthy job would be taken for the output of the check, or for the
    symptom of the playbook. The linter has a sample of healthy logs. A check that reads lines of
    the job's own log says `in_log: true`; then its abnormal findings must not match instead.

    Wrong:

    ```yaml
    recognise:
    - 'step \\d+'
    ```

    Right: text that only this command prints.

    ```yaml
    recognise:
    - '(?m)^Process \\d+: .*\\n+Python v\\d'
    ```
    """

    code = "CHK904"
    help = "use a pattern that a healthy run does not print"

    def finish(self, library: GuideLibrary) -> Iterator[Problem]:
        owners: dict[Pattern, list[CheckedGuide]] = {}
        for file in library.chosen:
            for pattern in dict.fromkeys(_telling(file.guide)):
                owners.setdefault(pattern, []).append(file)
        scanner = Scanner(list(owners))
        for number, _end in scanner.scan("\n".join(ordinary_lines()).encode()):
            pattern = scanner.patterns[number]
            for file in owners[pattern]:
                written = as_written(pattern.text, file.lines)
                yield self.problem(file, written, "this pattern matches a healthy log")


class UnknownTarget(GuideRule):
    """What a check or playbook names exists.

    That holds for the checks, playbooks and incidents that it names, for the causes of another
    playbook (`playbook:cause`), and for the causes of its own.

    Wrong:

    ```markdown
    - next: `dmesg`
    ```

    Right, with an id listed by `kb list --kind check`:

    ```markdown
    - next: `dmesg-xid`
    ```
    """

    code = "IDS406"
    help = "use an id listed by `kb list`, or the key of a cause of that playbook"

    def finish(self, library: GuideLibrary) -> Iterator[Problem]:
        known = _Known(library)
        for file in library.chosen:
            guide = file.guide
            named = _of_check(guide) if isinstance(guide, Check) else _of_playbook(guide)
            for written, target in dict.fromkeys(named):
                if target not in known:
                    yield self.problem(file, written, f"unknown {target.replace(':', ' ', 1)}")


class GuideIdTaken(GuideRule):
    """The id of a check or playbook is used by no other record.

    Incidents, checks and playbooks share one space of ids, so that `kb show ID` and a link mean one
    page. (A file of your team may reuse the id of a shipped record of the same kind on purpose, to
    replace it.)

    Wrong: `checks/dmesg-xid.md` beside `host/dmesg-xid.md`.

    Right: an id of its own, such as `our-dmesg-xid`.
    """

    code = "IDS407"
    help = "give one of the two files another id, or remove it"

    def finish(self, library: GuideLibrary) -> Iterator[Problem]:
        first: dict[str, CheckedGuide] = {}
        for file in library.chosen:
            other = first.setdefault(file.guide.id, file)
            if other is not file:
                message = f"duplicate id `{file.guide.id}`: {other.name} has it too"
                yield self.problem(file, "id:", message)
            elif file.guide.id in library.incidents:
                yield self.problem(file, "id:", f"an incident has the id `{file.guide.id}` too")


GUIDE_RULES: tuple[GuideRule, ...] = (
    OutputNotRecognised(),
    ExampleWithoutFinding(),
    NormalWithFault(),
    GuideFiresOnOrdinaryLog(),
    UnknownTarget(),
    GuideIdTaken(),
)


class _Known:
    """Every target, as `kind:id`; a cause as `cause:playbook:key`."""

    def __init__(self, library: GuideLibrary) -> None:
        self._targets = {f"incident:{name}" for name in library.incidents}
        for file in library.guides:
            guide = file.guide
            self._targets.add(f"{guide.kind}:{guide.id}")
            if isinstance(guide, Playbook):
                self._targets |= {f"cause:{guide.id}:{cause.key}" for cause in guide.body.causes}

    def __contains__(self, target: str) -> bool:
        kind, _, name = target.partition(":")
        if kind != "record":
            return target in self._targets
        if ":" in name:
            return f"cause:{name}" in self._targets
        return f"incident:{name}" in self._targets or f"playbook:{name}" in self._targets


def _telling(guide: Guide) -> Iterator[Pattern]:
    """The patterns of which one match says something about a log."""
    if not (isinstance(guide, Check) and guide.header.in_log):
        yield from declared_by(guide)
        return
    for finding in guide.body.findings:
        if finding.pattern and finding.abnormal and finding.rule is None:
            yield Pattern(finding.pattern, regex=True)


def _of_check(check: Check) -> Iterator[tuple[str, str]]:
    """What a check names, as it is written and as a target."""
    for finding in check.body.findings:
        for target in finding.points_to:
            yield f"`{target}`", f"record:{target}"
        if finding.next:
            yield f"`{finding.next}`", f"check:{finding.next}"


def _of_playbook(playbook: Playbook) -> Iterator[tuple[str, str]]:
    body = playbook.body
    for line in playbook.header.lines:
        if line.cause:
            yield f"cause: {line.cause}", f"cause:{playbook.id}:{line.cause}"
    for question in body.ask:
        for answer in question.answers:
            for key in answer.favours:
                own = f"cause:{playbook.id}:{key}"
                yield f"`{key}`", key if key.startswith("playbook:") else own
    for step in body.checks:
        yield f"### {step.check}", f"check:{step.check}"
        yield from (_way(playbook, outcome.then) for outcome in step.outcomes)
    for cause in body.causes:
        yield from ((f"`{name}`", f"incident:{name}") for name in cause.incidents)
    yield from (_way(playbook, one.see) for one in body.not_this)


def _way(playbook: Playbook, way: str) -> tuple[str, str]:
    kind, _, name = way.partition(":")
    return f"`{way}`", f"cause:{playbook.id}:{name}" if kind == "cause" else way


def _outputs(check: Check) -> Iterator[tuple[str, str]]:
    yield "its normal output", check.body.normal
    for finding in check.body.findings:
        if finding.example:
            yield f"the example of `{finding.id}`", finding.example


def _having(findings: Sequence[Finding], text: str) -> set[str]:
    """The ids of the findings whose pattern is in a text."""
    told = [finding for finding in findings if finding.pattern]
    scanner = _compiled(tuple(finding.pattern or "" for finding in told))
    return {told[number].id for number, _end in scanner.scan(text.encode())}


@cache  # several rules look for the findings of a check, in several texts
def _compiled(patterns: tuple[str, ...]) -> Scanner:
    return Scanner([Pattern(pattern, regex=True) for pattern in patterns])


def _first(text: str) -> str:
    return text.lstrip("\n").split("\n")[0]
