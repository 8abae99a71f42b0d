"""`pip list` and `pip freeze`: versions that belong together."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.checks.model import Found, Output, Reader

_PACKAGE = re.compile(r"([A-Za-z][\w.-]{0,99})(?:==|\s+)(\d[\w.+!-]{0,60})\s*(?:/.*)?$")
_MINOR = re.compile(r"(\d{1,4})\.(\d{1,4})")
_CUDA_WHEEL = re.compile(r"nvidia-(?:nccl|cublas|cudnn|cuda-runtime)-cu(1[1-9])$")

_VISION_AHEAD = 15
"""torchvision 0.(n + 15) is built for torch 2.n."""
_TRITON = {4: "3.0", 5: "3.1", 6: "3.2", 7: "3.3", 8: "3.4", 9: "3.5"}
"""By the minor release of torch 2: the Triton that it pins."""

_Packages = dict[str, tuple[str, int]]
"""Version and row, by name."""


def read_pip_list(output: Output) -> Iterator[Found]:
    """Pairs of packages that do not fit."""
    packages: _Packages = {}
    for row, line in enumerate(output.lines):
        if match := _PACKAGE.match(line):
            packages[match[1].lower().replace("_", "-")] = (match[2], row)
    torch = _MINOR.match(packages["torch"][0]) if "torch" in packages else None
    if torch and torch[1] == "2":
        yield from _torch_pairs(int(torch[2]), packages)
    yield from _cuda_wheels(packages)


def _torch_pairs(torch: int, packages: _Packages) -> Iterator[Found]:
    wanted = {"torchvision": f"0.{torch + _VISION_AHEAD}", "triton": _TRITON.get(torch)}
    findings = {
        "torchvision": "torchvision-built-torch-minor",
        "triton": "inductor-expects-triton-release",
    }
    for name, minor in wanted.items():
        version, row = packages.get(name, ("", 0))
        found = _MINOR.match(version)
        if found and minor and found[0] != minor:
            text = f"torch {packages['torch'][0]} needs {name} {minor}, and {version} is installed."
            yield Found(findings[name], text, row)


def _cuda_wheels(packages: _Packages) -> Iterator[Found]:
    wheels = {name: match[1] for name in packages if (match := _CUDA_WHEEL.match(name))}
    if len(set(wheels.values())) > 1:
        names = ", ".join(sorted(wheels))
        row = packages[max(wheels)][1]
        text = f"CUDA libraries of two majors lie in one environment: {names}."
        yield Found("two-cuda-majors-environment", text, row)


READERS: dict[str, Reader] = {
    "pip-list": read_pip_list,
}
"""By the id of the check."""
