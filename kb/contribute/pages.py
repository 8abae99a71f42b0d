"""`python -m kb.contribute.pages docs`: write what the code knows best: rules and schema."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from kb.check import CheckHeader
from kb.contribute.lint import ALL_RULES, GUIDE_RULES
from kb.incident import Header, Kind
from kb.markdown.frontmatter import AnyHeader
from kb.markdown.rules import SHAPE_RULES
from kb.playbook import PlaybookHeader
from kb.problem import DocumentedRule

FAMILIES = {
    "SHP": "the shape of the file: YAML, keys, headings, steps",
    "SIG": "signatures",
    "EVD": "evidence: it must find its own record and no other",
    "IDS": "ids and the links between records",
    "DFT": "drafts of `kb new`",
    "PRO": "prose: actionable steps, and the limits of a match",
    "DUP": "duplicates",
    "CHK": "checks and playbooks: outputs, findings and the lines of a symptom",
    "CLM": "claims: releases, versions, sources, and what a command destroys",
    "SEC": "secrets, and names of machines and people",
}
"""The letters with which the codes of a family begin, and what the family is about."""

_COMMAND = "python -m kb.contribute.pages docs"


def pages() -> dict[str, str]:
    """Every file that is written, by its path below `docs`."""
    rules = sorted(
        (*SHAPE_RULES, *(type(rule) for rule in (*ALL_RULES, *GUIDE_RULES))),
        key=lambda rule: rule.code,
    )
    return {
        **{
            f"{name}.schema.json": json.dumps(_schema(name, header), indent=2) + "\n"
            for name, header in HEADERS.items()
        },
        "lint/README.md": _index(rules),
        **{f"lint/{rule.code}.md": _page(rule) for rule in rules},
    }


HEADERS: Mapping[str, type[AnyHeader]] = {
    "incident": Header,
    "check": CheckHeader,
    "playbook": PlaybookHeader,
}
"""The front matter of each form of record."""


def _schema(name: str, header: type[AnyHeader]) -> dict[str, Any]:
    """JSON Schema of the front matter, for editors. Dates are text there, as in YAML."""
    schema = msgspec.json.schema(header)
    kinds = [kind for kind in Kind if HEADERS.get(kind, Header) is header]
    schema["$defs"]["Kind"]["enum"] = sorted(kinds)
    article = "an" if name[0] in "aeiou" else "a"
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Front matter of {article} {name} record",
        **schema,
    }


def _page(rule: type[DocumentedRule]) -> str:
    rest = _documentation(rule).partition("\n\n")[2]
    title = f"# {rule.code}: {_name(rule)}"
    return f"{title}\n\n{rule.severity.capitalize()}. **{_summary(rule)}**\n\n{rest}\n"


def _index(rules: list[type[DocumentedRule]]) -> str:
    parts = [
        "# What `kb lint` checks",
        "A record with an error is not used; a warning does not exclude it. These pages are"
        f" generated from the docstrings of the rules by `{_COMMAND}`.",
    ]
    for letters, about in FAMILIES.items():
        rows = [
            f"| [{rule.code}]({rule.code}.md) | {_summary(rule)} |"
            for rule in rules
            if rule.code.startswith(letters)
        ]
        head = "| code | rule |\n| --- | --- |\n"
        parts += [f"## {letters}: {about}", head + "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def _documentation(rule: type[DocumentedRule]) -> str:
    return inspect.getdoc(rule) or ""


def _summary(rule: type[DocumentedRule]) -> str:
    return _documentation(rule).partition("\n\n")[0].replace("\n", " ")


def _name(rule: type[DocumentedRule]) -> str:
    """`KeyGivenTwice` as words."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", rule.__name__).lower()


def main() -> None:
    """Write the files, and remove the pages of rules that are gone."""
    directory = Path(sys.argv[1])
    written = pages()
    (directory / "lint").mkdir(parents=True, exist_ok=True)
    for name, text in written.items():
        (directory / name).write_text(text, encoding="utf-8")
    for path in (directory / "lint").glob("*.md"):
        if f"lint/{path.name}" not in written:
            path.unlink()


if __name__ == "__main__":
    main()
