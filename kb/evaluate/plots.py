"""Curves of an evaluation, as SVG and PNG. Needs the extra `plots`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kb.errors import EvaluationError
from kb.evaluate.measure import Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("svg", "png")
_SIZE_INCHES = (5.0, 4.0)


def plot(report: Report, directory: Path, kinds: Sequence[str] = KINDS) -> list[Path]:
    """Draw the reliability diagram and precision against coverage; return the files written.

    Raises:
        EvaluationError: matplotlib is not installed, or the directory cannot be written.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise EvaluationError(
            "--plot needs matplotlib; run: pip install 'incident-kb[plots]'"
        ) from error
    mpl.rcParams["svg.hashsalt"] = "incident-kb"
    reliability, coverage = Figure(_SIZE_INCHES), Figure(_SIZE_INCHES)
    _draw_reliability(reliability, report)
    _draw_coverage(coverage, report)
    written = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, figure in (("reliability", reliability), ("coverage", coverage)):
            for kind in kinds:
                written.append(directory / f"{name}.{kind}")
                undated = {"Date": None} if kind == "svg" else None
                figure.savefig(written[-1], metadata=undated, bbox_inches="tight")
    except OSError as error:
        raise EvaluationError(f"cannot write to {directory}: {error.strerror}") from error
    return written


def _draw_reliability(figure: Figure, report: Report) -> None:
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="grey", linewidth=1, linestyle="--", label="perfect")
    axes.bar(
        [one.low for one in report.reliability],
        [one.right for one in report.reliability],
        width=[one.high - one.low for one in report.reliability],
        align="edge",
        alpha=0.4,
        label="right",
    )
    axes.plot(
        [one.said for one in report.reliability],
        [one.right for one in report.reliability],
        marker="o",
        label="stated vs actual",
    )
    for one in report.reliability:
        axes.annotate(str(one.answers), (one.said, one.right), (0, 6), textcoords="offset points")
    axes.set(
        xlabel="stated confidence",
        ylabel="share of correct answers",
        xlim=(0, 1),
        ylim=(0, 1.08),
        title=f"calibration error {report.calibration_error:.3f}",
    )
    axes.legend(loc="upper left")


def _draw_coverage(figure: Figure, report: Report) -> None:
    axes = figure.subplots()
    axes.plot(
        [point.coverage for point in report.coverage],
        [point.precision for point in report.coverage],
    )
    axes.set(
        xlabel="coverage: share of answerable reports that are answered",
        ylabel="precision: share of answers that are correct",
        xlim=(0, 1.02),
        ylim=(0, 1.02),
        title=f"separation {report.separation:.3f}",
    )
    axes.grid(alpha=0.3)
