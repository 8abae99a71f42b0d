"""Writes the shell script that gathers evidence on the nodes before a restart."""

from kb.collect.choice import Choice, choose
from kb.collect.script import to_script

__all__ = ["Choice", "choose", "to_script"]
