"""A criterion in order, in the shape of rubric files, for a test to spoil; and the same as the JSON form of levels."""

from copy import deepcopy
from typing import Any


def level(label: str) -> dict[str, Any]:
    return {
        "label": label,
        "description": f"The totals are {label}",
        "characteristics": [f"{label} sum in the last row"],
    }


def some_criterion(**changed: Any) -> dict[str, Any]:
    criterion = {
        "name": "Right totals",
        "id": "totals",
        "type": "objective",
        "description": "Whether the totals are the sums of the rows",
        "rubric": {"1": level("wrong"), "3": level("rounded"), "5": level("exact")},
        "edge_cases": [{"situation": "A row is empty", "guidance": "It counts as zero"}],
        "method": {"primary": "direct_scoring", "confidence_threshold": 0.8},
    }
    merged = {**deepcopy(criterion), **changed}
    return {key: value for key, value in merged.items() if value is not None}


def some_levels(**changed: Any) -> dict[str, Any]:
    levels = [{"score": score, **level(label)} for score, label in ((1, "wrong"), (3, "rounded"), (5, "exact"))]
    cases = [{"situation": "A row is empty", "guidance": "It counts as zero"}]
    return {"levels": levels, "edgeCases": cases, "type": "objective", **changed}
