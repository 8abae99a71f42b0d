"""`python -m fuzz TARGET [options of libFuzzer] [directories of inputs]`."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["kb", "index", "markdown_it", "mdit_py_plugins"]):
    from fuzz.targets import TARGETS

target = TARGETS[sys.argv.pop(1)]
target(b"")  # what is loaded once is no part of the first input's time
atheris.Setup(sys.argv, target)
atheris.Fuzz()
