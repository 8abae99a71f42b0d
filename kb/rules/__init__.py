"""Rules as data: tables that code walks. docs/rules.md says how to add a row."""
