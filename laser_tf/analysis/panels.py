"""Pictures of several panels with one legend below them."""

import contextlib
import csv
import math
import pathlib
from collections.abc import Iterable, Iterator, Sequence

import matplotlib
import numpy as np

matplotlib.use("Agg")

from matplotlib import pyplot

_LEGEND_COLUMNS = 2


@contextlib.contextmanager
def drawn(path: pathlib.Path, rows: int, columns: int) -> Iterator[np.ndarray]:
    """Axes [rows, columns] to draw on; the picture is written in the end.

    Args:
      path: of the PNG.
      rows: of panels.
      columns: of panels.
    """
    size = (max(5.5, 3.8 * columns), 3.2 * rows + 0.5)  # inches, the legend's among them
    picture, axes = pyplot.subplots(
        rows, columns, figsize=size, layout="constrained", squeeze=False
    )
    try:
        yield axes
        # All panels show the same labels.
        picture.legend(
            *axes.flat[0].get_legend_handles_labels(),
            loc="outside lower center",
            ncols=_LEGEND_COLUMNS,
            frameon=False,
        )
        picture.savefig(path, dpi=130)
    finally:
        pyplot.close(picture)


def write_csv(path: pathlib.Path, columns: Sequence[str], rows: Iterable[Sequence]) -> None:
    """Writes the numbers beside a picture."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)


def cells(values: Iterable[float]) -> list[str]:
    """Numbers for a CSV, in six digits; what is not a number is left empty."""
    return ["" if math.isnan(value) else f"{value:.6g}" for value in values]
