"""Modules are loaded in two threads, for speed. Python breaks off with a deadlock where one thread
loads a package that imports modules of its own, and another begins with one of these modules."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import QUESTION, Small

SPY = """
import sys, threading, os
from pathlib import Path
report = Path(sys.argv.pop(1))
single, threads = set(), {}
def imported(event, arguments):
    if event == "import":
        name = arguments[0]
        if threading.active_count() == 1:
            single.add(name)
        packages = name.split(".")
        for length in range(1, len(packages) + 1):
            threads.setdefault(".".join(packages[:length]), set()).add(threading.get_ident())
sys.addaudithook(imported)
leave = os._exit
def end(code):
    report.write_text("\\n".join(n for n, by in threads.items() if len(by) > 1 and n not in single))
    leave(code)
os._exit = end
from kb.__main__ import main
main()
"""


def imports_its_own(package: str, home: Path) -> bool:
    path = home.joinpath(*package.split("."), "__init__.py")
    return path.exists() and f"from {package}." in path.read_text()


@pytest.mark.parametrize("arguments", [["ask"], ["ask", "--json"], ["chat"]])
def test_a_package_that_two_threads_import_from_is_there_before(
    small: Small, tmp_path: Path, arguments: list[str]
) -> None:
    spy, report = tmp_path / "spy.py", tmp_path / "report"
    spy.write_text(SPY)
    small.kb(program=(sys.executable, str(spy), str(report), *arguments), stdin=QUESTION)
    shared = report.read_text().splitlines()
    assert [name for name in shared if imports_its_own(name, small.home)] == []
