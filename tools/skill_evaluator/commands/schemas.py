"""`skill-evaluator schemas`: write the JSON Schema of every file format, for editors and other tools."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel

from skill_evaluator.audit.findings.results import AuditResult
from skill_evaluator.audit.run.jobs import AuditPlan
from skill_evaluator.audit.run.manifest import AuditManifest
from skill_evaluator.ci.collecting import Outcome
from skill_evaluator.ci.plan import Plan
from skill_evaluator.commands.options import CONFIG
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.library.components import Datasets, FrontMatter
from skill_evaluator.library.config import Models, Settings
from skill_evaluator.library.questions import Question
from skill_evaluator.library.scenarios import ScenarioFrontMatter
from skill_evaluator.records.acceptance import AcceptedVersions
from skill_evaluator.records.leaderboard import Leaderboard
from skill_evaluator.records.record import Record
from skill_evaluator.runner.journal import Manifest
from skill_evaluator.verdicts.history import History
from skill_evaluator.verdicts.results import ComparisonResult
from skill_evaluator.verdicts.rules import Waiver
from skill_evaluator.verdicts.sizing import SizingPlan

EXAMPLES = ("skill-evaluator schemas .evaluator/schemas",)
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
    "accepted": AcceptedVersions,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemasOptions:
    """The options of `schemas`."""

    folder: Annotated[Path, typer.Argument(help="Where to write them.")] = CONFIG / "schemas"


def schemas(options: SchemasOptions) -> int:
    """Write the JSON Schema of every file format, for editors and other tools."""
    for name, model in FORMATS.items():
        path = options.folder / f"{name}.json"
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema()}
        replace_text(path, json_text(schema))
        print(path)
    return EXIT_OK
