"""A table from a file → a cube, whichever of the two kinds of table it is."""

from collections.abc import Mapping
from pathlib import Path

from skill_evaluator.audit.cube import Cube
from skill_evaluator.audit.holes import Missing
from skill_evaluator.audit.outcome_tables import read_outcomes
from skill_evaluator.audit.tables import OUTCOME_COLUMNS, header_of, read_scores


def read_cube(path: Path, *, weights: Mapping[str, float], missing: Missing = "refuse") -> Cube:
    """Read a table of scores or of single answers, by its header; raises AuditError."""
    read = read_outcomes if header_of(path) == OUTCOME_COLUMNS else read_scores
    return read(path, weights=weights, missing=missing)
