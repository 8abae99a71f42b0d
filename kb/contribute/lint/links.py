"""Rules about ids and links between records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.front_matter import front_matter_plugin

from kb.contribute.lint.checked import CheckedFile, CheckedText
from kb.contribute.lint.context import LintContext
from kb.contribute.lint.rule import Rule, TextRule
from kb.markdown import is_web_link
from kb.problem import Problem

_MAYBE = re.compile(r"\]\(|\]:|<[A-Za-z][A-Za-z0-9+.-]*:")
"""Without one of these there is no link, and reading Markdown takes time."""


class _Markdown(MarkdownIt):
    """Takes every link for one: `javascript:` is to be reported, not left out."""

    def validateLink(self, url: str) -> bool:  # noqa: ARG002, N802
        return True


_MARKDOWN = _Markdown("commonmark").use(front_matter_plugin)


class IdGivenTwice(Rule):
    """Ids are unique among the checked files.

    The id is the file name, whatever the folder. If two files share an id, only one of them can be
    shown. (A record of your team may reuse the id of a shipped record on purpose, to replace it.
    Those files are in different directories, and this rule does not compare them.)

    Wrong: `team/nccl/ring-hang.md` beside `team/pytorch/ring-hang.md`.

    Right: `team/nccl/nccl-ring-hang-after-link-flap.md` with `id: nccl-ring-hang-after-link-flap`.
    """

    code = "IDS401"
    help = "give one of the two files another id, or remove it"

    def finish(self, context: LintContext) -> Iterator[Problem]:
        first: dict[str, CheckedFile] = {}
        for file in context.chosen:
            other = first.setdefault(file.incident.id, file)
            if other is not file:
                message = f"duplicate id `{file.incident.id}`: {other.name} has it too"
                yield self.problem(file, "id:", message)


class UnknownIncident(Rule):
    """`Distinguish` names existing ids.

    The tool asks the question when both records are possible. With an unknown id, it can never ask
    it.

    Wrong:

    ```markdown
    - `shm-too-small`: Does the failing line name a `/dev/shm/nccl-` segment?
    ```

    Right, with an id listed by `kb list`:

    ```markdown
    - `dev-shm-too-small-bus-error`: Does the failing line name a `/dev/shm/nccl-` segment?
    ```
    """

    code = "IDS402"
    help = "use an id listed by `kb list`"

    def finish(self, context: LintContext) -> Iterator[Problem]:
        known = {file.incident.id for file in context.files}
        for file in context.files:
            for item in file.incident.body.distinguish:
                if item.other not in known:
                    message = f"unknown incident `{item.other}`"
                    yield self.problem(file, f"`{item.other}`:", message)


class DistinguishedFromItself(Rule):
    """A record does not name itself in `Distinguish`.

    Wrong, in `nccl-shm-too-small-container.md`:

    ```markdown
    - `nccl-shm-too-small-container`: Is `/dev/shm` full?
    ```

    Right: name the incident for which the answer is *no*.
    """

    code = "IDS403"
    help = "name the other incident"

    def check(self, file: CheckedFile) -> Iterable[Problem]:
        return [
            self.problem(file, f"`{item.other}`:", "the record distinguishes itself from itself")
            for item in file.incident.body.distinguish
            if item.other == file.incident.id
        ]


class OneSidedDistinction(Rule):
    """Two look-alikes name each other.

    Then the tool can ask the deciding question whichever record ranks first, and a reader of either
    record learns about the other. `--fix` cannot write the missing half: it is a question whose
    *yes* supports the other record, and only a person who knows both can phrase it. Shipped records
    need not name records of your own directory.

    Wrong: only `nccl-shm-too-small-container.md` names the other, `dev-shm-too-small-bus-error`.

    Right, in `dev-shm-too-small-bus-error.md`:

    ```markdown
    - `nccl-shm-too-small-container`: Did a DataLoader worker die of a bus error?
    ```
    """

    code = "IDS404"
    help = "add a question to `Distinguish` of the other record whose yes supports that record"

    def finish(self, context: LintContext) -> Iterator[Problem]:
        by_id = {file.incident.id: file for file in context.files}
        for file in context.files:
            for item in file.incident.body.distinguish:
                other = by_id.get(item.other)
                if other is None or (other.shipped and not file.shipped):
                    continue
                if file.incident.id not in {back.other for back in other.incident.body.distinguish}:
                    message = f"`{item.other}` does not name `{file.incident.id}` in Distinguish"
                    yield self.problem(file, f"`{item.other}`:", message)


class LinkNotHttp(TextRule):
    """Links in the text use http or https.

    Records are read in a terminal, on a forge and in a browser, by people who did not write them.
    A `file:` or relative link does not work there; a `javascript:` or `data:` link is dangerous.

    Wrong:

    ```markdown
    See [our runbook](file:///srv/wiki/nccl.html).
    ```

    Right:

    ```markdown
    See [our runbook](https://wiki.example.org/nccl).
    ```
    """

    code = "IDS405"
    help = "use an http:// or https:// link, or write the name without a link"

    def check(self, file: CheckedText) -> Iterator[Problem]:
        prose = "\n".join(file.lines).partition("\n## Evidence")[0]
        if not _MAYBE.search(prose):
            return
        for target in _links(_MARKDOWN.parse(prose)):
            if not is_web_link(target):
                yield self.problem(file, target, f"the link `{target}` is not http(s)")


class UnknownSymptom(Rule):
    """The `symptoms` of a record are ids of playbooks.

    Where somebody describes another symptom than those of a record, the record is less likely. A
    name that no playbook has says nothing.

    Wrong:

    ```yaml
    symptoms: [hangs]
    ```

    Right, with an id listed by `kb list --kind playbook`:

    ```yaml
    symptoms: [hang-at-start]
    ```
    """

    code = "IDS408"
    help = "use an id listed by `kb list --kind playbook`"

    def finish(self, context: LintContext) -> Iterator[Problem]:
        for file in context.chosen:
            for name in file.incident.header.symptoms:
                # A library without playbooks leaves them to the one that it is added to.
                if context.playbooks and name not in context.playbooks:
                    yield self.problem(file, "symptoms:", f"unknown playbook `{name}`")


LINK_RULES: tuple[Rule, ...] = (
    IdGivenTwice(),
    UnknownIncident(),
    DistinguishedFromItself(),
    OneSidedDistinction(),
    LinkNotHttp(),
    UnknownSymptom(),
)


def _links(tokens: Iterable[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type in ("link_open", "image"):
            yield str(token.attrGet("href") or token.attrGet("src") or "")
        yield from _links(token.children or ())
