"""`skill-evaluator schemas`: write the JSON Schema of every file format, for editors and other tools."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel

from skill_evaluator.audit.manifest import AuditManifest
from skill_evaluator.audit.results import AuditResult
from skill_evaluator.components import Datasets, FrontMatter
from skill_evaluator.config import Models, Settings
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.leaderboard import Leaderboard
from skill_evaluator.pipeline.audit_plan import AuditPlan
from skill_evaluator.pipeline.manifest import Plan
from skill_evaluator.pipeline.outcome import Outcome
from skill_evaluator.questions import Question
from skill_evaluator.records import Record
from skill_evaluator.regression.history import History
from skill_evaluator.regression.policy import Waiver
from skill_evaluator.regression.results import ComparisonResult
from skill_evaluator.regression.sizing import SizingPlan
from skill_evaluator.runner.journal import Manifest
from skill_evaluator.scenarios import ScenarioFrontMatter

FORMATS: Mapping[str, type[BaseModel]] = {
    "models": Models,
    "settings": Settings,
    "prompt-front-matter": FrontMatter,
    "scenario-front-matter": ScenarioFrontMatter,
    "datasets": Datasets,
    "question": Question,
    "manifest": Manifest,
    "record": Record,
    "leaderboard": Leaderboard,
    "plan": Plan,
    "outcome": Outcome,
    "waiver": Waiver,
    "comparison": ComparisonResult,
    "history": History,
    "sizing": SizingPlan,
    "audit": AuditManifest,
    "audit-plan": AuditPlan,
    "audit-report": AuditResult,
}


def write_schemas(folder: Path) -> int:
    """Write `<format>.json` for each format into a folder and print the paths; returns the exit code."""
    for name, model in FORMATS.items():
        path = folder / f"{name}.json"
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema()}
        replace_text(path, json_text(schema))
        print(path)
    return EXIT_OK
