"""The first screen waits for nothing that is heavy."""

from __future__ import annotations

import subprocess
import sys


def test_what_searches_is_imported_after_the_first_screen() -> None:
    code = (
        "import sys, tui.app, kb.service.input\n"
        "heavy = {'faiss', 'hyperscan', 'kb.diagnosis', 'numpy', 'onnxruntime', 'torch'}\n"
        "sys.exit(','.join(sorted(heavy & set(sys.modules))) or 0)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert run.returncode == 0, run.stderr
