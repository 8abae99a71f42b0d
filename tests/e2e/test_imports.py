"""Modules are loaded in several threads, when they are needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TWO_THREADS = """
import sys, threading
from importlib.machinery import PathFinder, SourceFileLoader
from kb.cli.process import prepare

class Slow(SourceFileLoader):
    def create_module(self, spec):
        if second.ident is None:
            second.start()
            second.join(1)

class Finder:
    def find_spec(self, name, path, target=None):
        spec = PathFinder.find_spec(name, path)
        if name == "parcel":
            spec.loader = Slow(name, spec.origin)
        return spec

prepare()
loaded = []
second = threading.Thread(target=lambda: loaded.append(__import__("parcel.content")))
sys.meta_path.insert(0, Finder())
import parcel
second.join()
print(parcel.content.VALUE, len(loaded))
"""
"""The second thread begins with a module of a package that the first one is about to load."""


def test_two_threads_can_load_a_package_and_a_module_of_it(tmp_path: Path) -> None:
    package = tmp_path / "parcel"
    package.mkdir()
    (package / "__init__.py").write_text("from parcel.content import VALUE\n")
    (package / "content.py").write_text("VALUE = 'whole'\n")
    (tmp_path / "main.py").write_text(TWO_THREADS)
    run = subprocess.run([sys.executable, tmp_path / "main.py"], capture_output=True, check=False)
    assert (run.stdout, run.stderr) == (b"whole 1\n", b"")
