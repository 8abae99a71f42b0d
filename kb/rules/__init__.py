"""What is known about the forms of logs, as data: one TOML file for each kind of rule.

Every row has a name, a pattern, examples, and what an example yields. `docs/rules.md` tells how to
add one; `tests/kb/test_rules.py` reads every row and checks its examples.
"""

from kb.rules.load import (
    RuleError,
    any_of,
    convert_row,
    file_digest,
    host_pattern,
    read_rows,
    read_tables,
    read_words,
    without_names,
)

__all__ = [
    "RuleError",
    "any_of",
    "convert_row",
    "file_digest",
    "host_pattern",
    "read_rows",
    "read_tables",
    "read_words",
    "without_names",
]
