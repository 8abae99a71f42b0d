"""Rules about private data: secrets, and names of machines and people."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from kb.contribute.lint.checked import CheckedFile, CheckedText
from kb.contribute.lint.rule import Rule, TextRule
from kb.contribute.neutral import is_public
from kb.evidence.secrets import mask_secrets
from kb.log.prefixes import split_prefix
from kb.problem import Problem

_ADDRESS = re.compile(r"(?<![\w.+=-])(?:\d{1,3}\.){3}\d{1,3}(?![\w.-]*\d)")
_PERSON = re.compile(
    r"[\w.+-]+@(?!example\.|v?\d)[\w-]+\.(?:[\w-]+\.)*[a-z]{2,}\b|(?:/home|/Users)/(?!user\b)[\w.-]+"
)
_DOMAIN = re.compile(
    r"(?<![\w.@/-])(?:[A-Za-z][\w-]*\.)+(?:com|org|net|edu|gov|cn|local|internal|lan|corp)"
    r"(?![\w-]|\.\w)"
)
_NUMBERED = re.compile(r"[A-Za-z][\w-]*(?:-\w*\d|\d\d)[\w-]*")
_NEUTRAL = re.compile(
    r"(?:gpu-)?(?:node|host|worker|trainer|pod|rank|server|head|login|gpu|master)-?(?:\d+|[a-z])?"
    r"(?:\.(?:internal|local|cluster\.local|example\.(?:org|com|net)))?",
    re.IGNORECASE,
)
_RESOLVERS = frozenset({"1.1.1.1", "8.8.4.4", "8.8.8.8"})
"""Public DNS resolvers. Programs use these addresses to look up a route."""


class HoldsSecret(TextRule):
    """A record contains no token, key or password.

    Records are shared and stay in the git history. A secret that was committed once is leaked, so
    revoke it too.

    Wrong:

    ```text
    HF_TOKEN=hf_...the token...
    ```

    Right:

    ```text
    HF_TOKEN=<secret: token>
    ```

    `kb new` masks the secrets that it recognises; `kb lint --fix` does the same in existing files.
    """

    code = "SEC801"
    help = "replace it with <secret: its kind>, and revoke it if anybody could have read it"

    def check(self, file: CheckedText) -> Iterator[Problem]:
        text = "\n".join(file.lines)
        masked = mask_secrets(text)
        if masked == text:
            return
        for number, (line, safe) in enumerate(zip(file.lines, masked.split("\n"), strict=True), 1):
            if line != safe:
                said = "this line seems to contain a secret"
                yield Problem(file.name, number, self.code, said, self.help, safe.strip()[:100])


class NamesMachineOrPerson(Rule):
    """Evidence contains no name of your hosts, people or home directories, and no public address.

    Such names reveal how your cluster is built and who works there, and they do not help to find
    the cause. They also make the record harder to find, because rare words have a high weight.
    Private addresses such as `10.0.0.1` are neutral, and so are `node-1`, `worker-0`, `example.org`
    and `/home/user`.

    Wrong:

    ```text
    dgx-h100-042.hpc.corp: NCCL WARN Call to connect from 52.14.3.9 timed out
    ```

    Right:

    ```text
    node-1: NCCL WARN Call to connect from 10.0.0.1 timed out
    ```

    `kb new` writes neutral names; `kb lint --fix` inserts them into the evidence of existing files.
    """

    code = "SEC802"
    help = "use node-1, 10.0.0.1, user@example.org or /home/user; kb lint --fix does it for you"

    def check(self, file: CheckedFile) -> Iterator[Problem]:
        lines = file.incident.body.evidence_text.split("\n")
        for line in dict.fromkeys(lines):
            for name in dict.fromkeys(private_names(line)):
                yield self.problem(file, line, f"the evidence contains the name `{name}`")


PRIVATE_RULES: tuple[Rule, ...] = (HoldsSecret(), NamesMachineOrPerson())


def private_names(line: str) -> Iterator[str]:
    """Hosts, public addresses, people and home directories that a line names."""
    host = split_prefix(line).host or ""
    named = [host] if _NUMBERED.fullmatch(host) else []
    for name in (*named, *_DOMAIN.findall(line)):
        if not _NEUTRAL.fullmatch(name) and not is_public(name):
            yield name
    for address in _ADDRESS.findall(line):
        if address not in _RESOLVERS and _is_global(address):
            yield address
    yield from _PERSON.findall(line)


def _is_global(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_global
    except ValueError:
        return False
