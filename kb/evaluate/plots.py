"""Curves of an evaluation, as SVG and PNG. Needs the extra `plots`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from kb.errors import EvaluationError
from kb.evaluate.measure import Report
from kb.files import check_new

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("svg", "png")
_SIZE_INCHES = (5.0, 4.0)


def check_plots(directory: Path) -> None:
    """Find out before the work what would otherwise be told after it.

    Raises:
        EvaluationError: matplotlib is not installed.
        OutputError: a file of a curve is there already, or cannot be written.
    """
    _new_figure()
    for name, kind in product(_CURVES, KINDS):
        check_new(directory / f"{name}.{kind}")


def plots(report: Report, kinds: Sequence[str] = KINDS) -> Iterator[tuple[str, bytes]]:
    """Draw the reliability diagram and precision against coverage: names and contents of files.

    Raises:
        EvaluationError: matplotlib is not installed.
    """
    for name, draw in _CURVES.items():
        figure = _new_figure()
        draw(figure, report)
        for kind in kinds:
            drawn = BytesIO()
            undated = {"Date": None} if kind == "svg" else None
            figure.savefig(drawn, format=kind, metadata=undated, bbox_inches="tight")
            yield f"{name}.{kind}", drawn.getvalue()


def _new_figure() -> Figure:
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise EvaluationError(
            "--plot needs matplotlib; run: pip install 'incident-kb[plots]'"
        ) from error
    mpl.rcParams["svg.hashsalt"] = "incident-kb"
    return Figure(_SIZE_INCHES)


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


_CURVES: dict[str, Callable[[Figure, Report], None]] = {
    "reliability": _draw_reliability,
    "coverage": _draw_coverage,
}
"""How each is drawn, by the name of its file."""
