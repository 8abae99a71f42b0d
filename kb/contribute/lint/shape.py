"""The rules that `kb.markdown` checks while it reads a file; here they are only documented.

A file that breaks one of them is no record, so no other rule looks at it.
"""

from __future__ import annotations

from kb.contribute.lint.rule import Rule


class NoFrontMatter(Rule):
    """A record starts with its front matter.

    The first line is `---`, then come the keys, then another `---`. Without it nothing is known of
    the record, not even its id.

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


class NotYaml(Rule):
    """The front matter is YAML: `key: value` lines.

    What YAML takes for its own signs has to be quoted: a `: ` or ` #` inside a value, or a first
    letter such as `[`, `{`, `*`, `&`, `!`, `%`, `@` or a backtick.

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


class UnsafeYaml(Rule):
    """The front matter has no YAML anchors, aliases or tags, and no deep nesting.

    Records come from people we do not know. A few nested aliases grow to gigabytes, a tag can name
    an object of the program, and thousands of brackets exhaust what reads them. All are refused
    before anything is built from them.

    Wrong:

    ```yaml
    title: *same
    ```

    Right: write the value out; quote it if the sign is meant as text.

    ```yaml
    title: '*same'
    ```
    """

    code = "SHP103"


class KeyGivenTwice(Rule):
    """A key is given once.

    YAML would silently take the last one, and the reader the first.

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


class WrongField(Rule):
    """The keys are those of the [format](../record-format.md), each with a value of its form.

    The message names the key, and what was expected: an unknown or missing key, a word that is not
    one of those allowed, a link that is not http(s), a date that is none. An editor can check this
    while you write, with the [JSON Schema](../incident.schema.json).

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


class WrongHeading(Rule):
    """The headings are those of the record format, each once and in their order.

    `## Symptom`, `## Environment`, `## Cause`, `## Fix`, `## Verify`, then optionally `##
    Prevention` and `## Distinguish`, then `## Evidence`. Readers and programs find the part they
    need by its heading.

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


class EmptySection(Rule):
    """A heading has something below it.

    Wrong:

    ```markdown
    ## Prevention

    ## Evidence
    ```

    Right: fill the section, or remove the heading if it is `Prevention` or `Distinguish`.
    """

    code = "SHP107"


class FixIsNoList(Rule):
    """`## Fix` is one numbered list.

    Its items are shown one by one, ticked off, and copied. Text in front of the list, or a list
    that is broken because something is not indented, cannot be.

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


class WrongStep(Rule):
    """A step is a sentence, then at most one command, then at most a paragraph that says why.

    A step with two commands is two steps: one of them will be forgotten.

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


class WrongDistinction(Rule):
    """`## Distinguish` is a list of ids, each with a question.

    The question is asked of the user; *yes* speaks for this record, *no* for the other.

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


class EvidenceIsNoBlock(Rule):
    """`## Evidence` holds fenced blocks only.

    The blocks are asked like logs, so what stands in them has to be what a program printed, and
    what stands beside them would be lost.

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


class IdIsNotFileName(Rule):
    """The `id` is the name of the file without `.md`.

    Links, overrides and `kb show` go by the id; whoever looks for the file goes by its name.

    Wrong: `id: nccl-hang` in `nccl-ring-hang.md`.

    Right: `id: nccl-ring-hang` in `nccl-ring-hang.md`.
    """

    code = "SHP112"


class FileTooLarge(Rule):
    """A file has at most 200,000 bytes.

    A record is a page or two. What is larger is usually a whole log.

    Wrong: the log of the job below `## Evidence`.

    Right: the ten or twenty lines that tell this incident from others.
    """

    code = "SHP113"


class NotUtf8(Rule):
    """A file is UTF-8.

    Wrong: a file saved as UTF-16, GBK or Latin-1.

    Right: the same text saved as UTF-8. `iconv -f GBK -t UTF-8` converts it.
    """

    code = "SHP114"


class FileUnreadable(Rule):
    """A file can be read.

    What the system does not let the tool read is left out of every answer.

    Wrong: a file that only its writer may read, or a link to one that is gone.

    Right: `chmod a+r` on it, or the file itself in the place of the link.
    """

    code = "SHP115"


class ControlCharacter(Rule):
    """The text has no control characters.

    Records are shown in terminals. An escape sequence moves the cursor or changes colours there,
    and a lone carriage return hides what stands in front of it.

    Wrong: evidence copied with its colours, such as `ESC[31mERROR ESC[0m: out of memory`.

    Right:

    ```text
    ERROR: out of memory
    ```
    """

    code = "SHP116"


class PatternDoesNotCompile(Rule):
    """A signature compiles, and matches only what has some text.

    Patterns come from many people and run over every log, so they run on an engine whose time is
    linear whatever the pattern. It has no look-around and no back-references, and refuses what
    matches the empty text.

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


SHAPE_RULES: tuple[Rule, ...] = (
    NoFrontMatter(),
    NotYaml(),
    UnsafeYaml(),
    KeyGivenTwice(),
    WrongField(),
    WrongHeading(),
    EmptySection(),
    FixIsNoList(),
    WrongStep(),
    WrongDistinction(),
    EvidenceIsNoBlock(),
    IdIsNotFileName(),
    FileTooLarge(),
    NotUtf8(),
    FileUnreadable(),
    ControlCharacter(),
    PatternDoesNotCompile(),
)
