"""Rules about ids and links between records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.front_matter import front_matter_plugin

from kb.contribute.lint.checked import CheckedFile
from kb.contribute.lint.context import LintContext
from kb.contribute.lint.rule import Rule
from kb.problem import Problem

_MAYBE = re.compile(r"\]\(|\]:|<[A-Za-z][A-Za-z0-9+.-]*:")
"""Without one of these there is no link, and reading Markdown takes time."""


class _Markdown(MarkdownIt):
    """Takes every link for one: `javascript:` is to be reported, not left out."""

    def validateLink(self, url: str) -> bool:  # noqa: ARG002, N802
        return True


_MARKDOWN = _Markdown("commonmark").use(front_matter_plugin)


class IdGivenTwice(Rule):
    """No two of the files that are checked have the same id.

    The id is the name of the file, in whatever folder it lies. With two of them, only one can be
    shown. (A record of your team may have the id of a shipped one on purpose: it takes its place.
    Those are files of different libraries, and this rule does not look at both.)

    Wrong: `team/nccl/ring-hang.md` beside `team/pytorch/ring-hang.md`.

    Right: `team/nccl/nccl-ring-hang-after-link-flap.md`, and `id: nccl-ring-hang-after-link-flap`
    in it.
    """

    code = "IDS401"
    help = "give one of the two another id, or remove it"

    def finish(self, context: LintContext) -> Iterator[Problem]:
        first: dict[str, CheckedFile] = {}
        for file in context.chosen:
            other = first.setdefault(file.incident.id, file)
            if other is not file:
                message = f"the id `{file.incident.id}` is also that of {other.name}"
                yield self.problem(file, "id:", message)


class UnknownIncident(Rule):
    """`Distinguish` names records by ids that exist.

    The tool asks the question when both records are possible; with an id that no record has, it
    never can.

    Wrong:

    ```markdown
    - `shm-too-small`: Does the failing line name a `/dev/shm/nccl-` segment?
    ```

    Right, with an id that `kb list` shows:

    ```markdown
    - `dev-shm-too-small-bus-error`: Does the failing line name a `/dev/shm/nccl-` segment?
    ```
    """

    code = "IDS402"
    help = "use an id that `kb list` shows"

    def finish(self, context: LintContext) -> Iterator[Problem]:
        known = {file.incident.id for file in context.files}
        for file in context.files:
            for item in file.incident.body.distinguish:
                if item.other not in known:
                    message = f"there is no incident `{item.other}`"
                    yield self.problem(file, f"`{item.other}`:", message)


class DistinguishedFromItself(Rule):
    """A record is told from others, not from itself.

    Wrong, in `nccl-shm-too-small-container.md`:

    ```markdown
    - `nccl-shm-too-small-container`: Is `/dev/shm` full?
    ```

    Right: name the incident for which the answer is no.
    """

    code = "IDS403"
    help = "name the other incident"

    def check(self, file: CheckedFile) -> Iterable[Problem]:
        return [
            self.problem(file, f"`{item.other}`:", "a record is distinguished from itself")
            for item in file.incident.body.distinguish
            if item.other == file.incident.id
        ]


class OneSidedDistinction(Rule):
    """Two look-alikes name each other.

    Whichever comes first, the tool can then ask what tells them apart, and whoever reads either
    record learns of the other. `--fix` cannot write the missing half: it is a question for which
    *yes* speaks for the other record, and only somebody who knows both can phrase it. Of a shipped
    record it is not asked when the file is one of your own directory.

    Wrong: `dev-shm-too-small-bus-error` is named in `nccl-shm-too-small-container.md` only.

    Right, in `dev-shm-too-small-bus-error.md`:

    ```markdown
    - `nccl-shm-too-small-container`: Did a DataLoader worker die of a bus error?
    ```
    """

    code = "IDS404"
    help = "add a question to `Distinguish` of the other record, for which yes speaks for it"

    def finish(self, context: LintContext) -> Iterator[Problem]:
        by_id = {file.incident.id: file for file in context.files}
        for file in context.files:
            for item in file.incident.body.distinguish:
                other = by_id.get(item.other)
                if other is None or (other.shipped and not file.shipped):
                    continue
                if file.incident.id not in {back.other for back in other.incident.body.distinguish}:
                    message = (
                        f"`{item.other}` does not say how it is told from `{file.incident.id}`"
                    )
                    yield self.problem(file, f"`{item.other}`:", message)


class LinkNotHttp(Rule):
    """A link in the text leads to http or https.

    Records are read in a terminal, on a forge and in a browser, by people who did not write them.
    A `file:` or relative link leads nowhere there, and a `javascript:` or `data:` link can do harm.

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
    help = "link to http:// or https://, or write the name without a link"

    def check(self, file: CheckedFile) -> Iterator[Problem]:
        prose = "\n".join(file.lines).partition("\n## Evidence")[0]
        if not _MAYBE.search(prose):
            return
        for target in _links(_MARKDOWN.parse(prose)):
            if not target.lower().startswith(("https://", "http://")):
                yield self.problem(file, target, f"the link `{target}` is not http(s)")


LINK_RULES: tuple[Rule, ...] = (
    IdGivenTwice(),
    UnknownIncident(),
    DistinguishedFromItself(),
    OneSidedDistinction(),
    LinkNotHttp(),
)


def _links(tokens: Iterable[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type in ("link_open", "image"):
            yield str(token.attrGet("href") or token.attrGet("src") or "")
        yield from _links(token.children or ())
