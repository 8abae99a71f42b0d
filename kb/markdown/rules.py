"""The rules of a record's shape, which the reader reports: a problem names its rule, never a code.

A file that breaks one of them is no record, so no other rule of `kb lint` looks at it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kb.containment import contained
from kb.errors import IncidentError
from kb.problem import DocumentedRule, Problem

Made = TypeVar("Made")


class ShapeRule(DocumentedRule):
    """One thing that keeps a file from being a record."""


class NoFrontMatter(ShapeRule):
    """A record starts with front matter.

    The first line is `---`, then come the keys, then another `---`. Without it kb knows nothing
    about the record, not even its id.

    Wrong:

    ```markdown
    # NCCL hangs after a link flap
    ```

    Right:

    ```markdown
    ---
    id: nccl-ring-hang-after-link-flap
    ...
    ---
    ```
    """

    code = "SHP101"


class NotYaml(ShapeRule):
    """The front matter is YAML: `key: value` lines.

    Quote a value that contains YAML syntax: `: ` or ` #` inside the value, or a first character
    such as `[`, `{`, `*`, `&`, `!`, `%`, `@` or a backtick.

    Wrong:

    ```yaml
    title: NCCL fails: no socket interface found
    ```

    Right:

    ```yaml
    title: 'NCCL fails: no socket interface found'
    ```
    """

    code = "SHP102"


class UnsafeYaml(ShapeRule):
    """The front matter has no YAML anchors, aliases or tags, and no deep nesting.

    Records can come from untrusted authors. A few nested aliases can expand to gigabytes, a tag can
    name a Python object, and thousands of brackets can crash the parser. kb rejects all of them
    before it builds anything from them.

    Wrong:

    ```yaml
    title: *same
    ```

    Right: write the value out, or quote it if the character is meant as text.

    ```yaml
    title: '*same'
    ```
    """

    code = "SHP103"


class KeyGivenTwice(ShapeRule):
    """A key appears only once.

    YAML would silently use the last value, while a reader would see the first one.

    Wrong:

    ```yaml
    systems: [nccl]
    systems: [pytorch]
    ```

    Right:

    ```yaml
    systems: [nccl, pytorch]
    ```
    """

    code = "SHP104"


class WrongField(ShapeRule):
    """All keys belong to the [format](../record-format.md) and have valid values.

    The message names the key and the problem: an unknown or missing key, a value that is not
    allowed, a link that is not http(s), an invalid date. An editor can check this while you write,
    with the [JSON Schema](../incident.schema.json).

    Wrong:

    ```yaml
    kind: error
    references: [internal wiki]
    ```

    Right:

    ```yaml
    kind: incident
    references: [https://github.com/NVIDIA/nccl/issues/1]
    ```
    """

    code = "SHP105"


class WrongHeading(ShapeRule):
    """All headings belong to the record format, and appear once and in order.

    The order is `## Symptom`, `## Environment`, `## Cause`, `## Fix`, `## Verify`, then optionally
    `## Prevention` and `## Distinguish`, then `## Evidence`. Readers and programs find a section
    by its heading.

    Wrong:

    ```markdown
    ## Root cause
    ```

    Right:

    ```markdown
    ## Cause
    ```
    """

    code = "SHP106"


class EmptySection(ShapeRule):
    """No section is empty.

    Wrong:

    ```markdown
    ## Prevention

    ## Evidence
    ```

    Right: fill the section, or remove the heading if it is `Prevention` or `Distinguish`.
    """

    code = "SHP107"


class FixIsNoList(ShapeRule):
    """`## Fix` is one numbered list.

    The TUI shows, ticks off and copies the steps one by one. It cannot do so with text in front of
    the list, or with a list that is interrupted by a block without indentation.

    Wrong:

    ````markdown
    1. Restart the container.

    ```sh
    docker restart trainer
    ```
    ````

    Right:

    ````markdown
    1. Restart the container.

       ```sh
       docker restart trainer
       ```
    ````
    """

    code = "SHP108"


class WrongStep(ShapeRule):
    """A step is a sentence, then at most one command, then at most one paragraph that says why.

    Split a step with two commands into two steps; otherwise one of them will be forgotten.

    Wrong: an item that begins with a fenced block, or has two of them.

    Right:

    ````markdown
    1. Look at the size of the mount.

       ```sh
       df -h /dev/shm
       ```

       64 MB is the default of Docker.
    ````
    """

    code = "SHP109"


class WrongDistinction(ShapeRule):
    """`## Distinguish` is a list of ids, each with a question.

    kb asks the user this question; *yes* supports this record, *no* the other one.

    Wrong:

    ```markdown
    - Not to be confused with a full /dev/shm.
    ```

    Right:

    ```markdown
    - `nccl-shm-too-small-container`: Does the failing line name a `/dev/shm/nccl-` segment?
    ```
    """

    code = "SHP110"


class EvidenceIsNoBlock(ShapeRule):
    """`## Evidence` holds fenced blocks only.

    Each block is searched like a log, so it must contain only program output. Text outside of the
    blocks would be lost.

    Wrong:

    ```markdown
    The job prints: NCCL WARN Call to connect failed
    ```

    Right:

    ````markdown
    ```text
    NCCL WARN Call to connect failed
    ```
    ````
    """

    code = "SHP111"


class IdIsNotFileName(ShapeRule):
    """The `id` is the file name without `.md`.

    Links, overrides and `kb show` use the id; people look for the file by its name.

    Wrong: `id: nccl-hang` in `nccl-ring-hang.md`.

    Right: `id: nccl-ring-hang` in `nccl-ring-hang.md`.
    """

    code = "SHP112"


class FileTooLarge(ShapeRule):
    """A file has at most 200,000 bytes.

    A record is a page or two. A larger file usually contains a whole log.

    Wrong: the log of the job below `## Evidence`.

    Right: the ten or twenty lines that tell this incident apart from others.
    """

    code = "SHP113"


class NotUtf8(ShapeRule):
    """A file is UTF-8.

    Wrong: a file saved as UTF-16, GBK or Latin-1.

    Right: the same text saved as UTF-8. `iconv -f GBK -t UTF-8` converts it.
    """

    code = "SHP114"


class FileUnreadable(ShapeRule):
    """Every file is readable.

    An unreadable file is missing from every answer.

    Wrong: a file that only its owner may read, or a broken symbolic link.

    Right: run `chmod a+r` on the file, or replace the link by the file itself.
    """

    code = "SHP115"


class ControlCharacter(ShapeRule):
    """The text has no control characters.

    Records are shown in terminals. There an escape sequence moves the cursor or changes colours,
    and a lone carriage return hides the text before it.

    Wrong: evidence copied with its colours, such as `ESC[31mERROR ESC[0m: out of memory`.

    Right:

    ```text
    ERROR: out of memory
    ```
    """

    code = "SHP116"


class PatternDoesNotCompile(ShapeRule):
    """A signature compiles, and does not match empty text.

    Patterns come from many people and run over every log, so they run on an engine with linear
    time for every pattern. It has no look-around and no back-references, and it rejects patterns
    that match empty text. Counted repeats such as `.{0,50}` may add up to 512 characters in one
    pattern: more than that takes long to compile.

    Wrong:

    ```yaml
    - pattern: No space left (on device
      regex: true
    ```

    Right: without `regex: true` a pattern is plain text.

    ```yaml
    - pattern: No space left (on device
    ```
    """

    code = "SIG201"


class Unforeseen(ShapeRule):
    """kb can read the record, index it, and search with its evidence.

    kb failed at this file in a way that nobody foresaw. It leaves the record out, and all others
    answer. The message names the error; mostly it quotes the value that caused it.

    Wrong: a value that no program prints, such as a number of forty digits.

    Right: the line as it was printed. If it was printed so, report the file as a bug of kb.
    """

    code = "SHP117"


class WrongPart(ShapeRule):
    """The parts of a check or playbook stand under `###` headings, and each has its form.

    `## Commands` has one part for each environment, `## Findings` one for each finding, `## Ask`
    one for each question, `## Checks` one for each check, `## Causes` one for each cause. See
    [checks](../check-format.md) and [playbooks](../playbook-format.md) for what stands in a part.

    Wrong:

    ```markdown
    ## Findings

    The mount is full.
    ```

    Right:

    ```markdown
    ## Findings

    ### full

    The mount is full.

    - pattern: `(?m)^shm .* 100% /dev/shm$`
    ```
    """

    code = "SHP118"


class WrongItem(ShapeRule):
    """Every item of a list in a check or playbook has the form of its section.

    Entries are `- name: value`. Ids, keys and patterns are in backticks, so that a program can tell
    them from words.

    Wrong:

    ```markdown
    - next: look at free-h
    ```

    Right:

    ```markdown
    - then: look at the memory of the host
    - next: `free-h`
    ```
    """

    code = "SHP119"


class KindNotPlain(ShapeRule):
    """A check or playbook says its kind on a line of its own.

    kb keeps checks and playbooks apart from incidents by the line `kind: check` or
    `kind: playbook`, without parsing the file.

    Wrong:

    ```yaml
    "kind": 'check'
    ```

    Right:

    ```yaml
    kind: check
    ```
    """

    code = "SHP120"


SHAPE_RULES: tuple[type[ShapeRule], ...] = tuple(ShapeRule.__subclasses__())
"""Every rule above, in the order in which they are written."""


def unforeseen(path: str, what: str, do: Callable[[], Made]) -> Made:
    """Return what `do` returns, and hold a failure of it against one file. `what` is what kb does
    there in a few words: "read this file".

    Raises:
        IncidentError: `do` failed.
    """
    failures: list[str] = []
    with contained(f"kb cannot {what}", failures.append):
        return do()
    advice = "remove what the message names; if it is right, report the file as a bug of kb"
    raise IncidentError([Problem(path, 1, Unforeseen.code, failures[0], advice)])
