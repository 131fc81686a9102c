"""`skill-evaluator schemas`: write the JSON Schema of every file format, for editors and other tools."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel

from skill_evaluator.audit.findings.family import FamilyCheck
from skill_evaluator.audit.findings.results import AuditResult
from skill_evaluator.audit.run.jobs import AuditPlan
from skill_evaluator.audit.run.manifest import AuditManifest
from skill_evaluator.checking.rubrics import RubricLint
from skill_evaluator.ci.collecting import Outcome
from skill_evaluator.ci.doctor import DoctorReport
from skill_evaluator.ci.plan import Plan
from skill_evaluator.commands.options import CONFIG, argument, options
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.evaluation.discrimination import CaseAudit
from skill_evaluator.evaluation.mutation_results import MutationResult
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.judges.asking.items import OutputItem
from skill_evaluator.judges.asking.judging import Judging
from skill_evaluator.judges.asking.results import StoredScore, StoredVerdict
from skill_evaluator.judges.calibration.batch import RegressionLabel
from skill_evaluator.judges.calibration.files import LabelledPair, ScoredItem
from skill_evaluator.judges.calibration.judge_results import JudgeCalibration
from skill_evaluator.judges.calibration.planting import PlantedPair
from skill_evaluator.judges.cascade.results import CascadeResults, RegressionCascadeResults, ScoreCascadeResults
from skill_evaluator.judges.modes.pairwise import PairItem, PairwiseResults
from skill_evaluator.judges.modes.regression import RegressionAnswer, RegressionItem
from skill_evaluator.judges.modes.regression_results import RegressionResults
from skill_evaluator.judges.modes.scoring import ScoreResults
from skill_evaluator.judges.review.items import ReviewItem
from skill_evaluator.judges.review.labels import ReviewLabel
from skill_evaluator.judges.review.results import ReviewStatus
from skill_evaluator.library.cases import Question
from skill_evaluator.library.components import Datasets, FrontMatter
from skill_evaluator.library.config import Models, Settings, Waiver
from skill_evaluator.library.rubrics import Rubric, RubricLevels
from skill_evaluator.library.scenarios import ScenarioFrontMatter
from skill_evaluator.records.acceptance import AcceptedVersions
from skill_evaluator.records.leaderboard import Leaderboard
from skill_evaluator.records.pinned import PinnedOutputs, PinReport
from skill_evaluator.records.record import Record
from skill_evaluator.runner.batch_journal import BatchLine
from skill_evaluator.runner.journal import Manifest
from skill_evaluator.verdicts.history_results import History
from skill_evaluator.verdicts.ranking_results import ModelRanking
from skill_evaluator.verdicts.results import ComparisonResult
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
    "batches": BatchLine,
    "record": Record,
    "leaderboard": Leaderboard,
    "accepted": AcceptedVersions,
    "plan": Plan,
    "outcome": Outcome,
    "doctor": DoctorReport,
    "waiver": Waiver,
    "comparison": ComparisonResult,
    "history": History,
    "ranking": ModelRanking,
    "sizing": SizingPlan,
    "mutation": MutationResult,
    "case-audit": CaseAudit,
    "audit": AuditManifest,
    "audit-plan": AuditPlan,
    "audit-report": AuditResult,
    "scenarios": FamilyCheck,
    "rubric": Rubric,
    "rubric-levels": RubricLevels,
    "rubric-lint": RubricLint,
    "judging": Judging,
    "judge-score-item": OutputItem,
    "judge-scores": ScoreResults,
    "judge-pair-item": PairItem,
    "judge-pairs": PairwiseResults,
    "judge-cascade": CascadeResults,
    "judge-score-cascade": ScoreCascadeResults,
    "judge-regression-cascade": RegressionCascadeResults,
    "judging-item": LabelledPair,
    "judging-verdict": StoredVerdict,
    "judging-scored-item": ScoredItem,
    "judging-score": StoredScore,
    "judge-regression-item": RegressionItem,
    "judge-regression-answer": RegressionAnswer,
    "judge-regression": RegressionResults,
    "pinned": PinnedOutputs,
    "judge-pin": PinReport,
    "judge-calibration": JudgeCalibration,
    "judge-planted": PlantedPair,
    "judge-regression-label": RegressionLabel,
    "review-item": ReviewItem,
    "review-label": ReviewLabel,
    "review-status": ReviewStatus,
}
EDITED = ("models", "settings", "rubric", "waiver", "datasets")
"""The formats of files that people write, for their editors."""


@options
class SchemasOptions:
    """The options of `schemas`."""

    folder: Path = argument("Where to write them.", CONFIG / "schemas")


def schemas(options: SchemasOptions) -> int:
    """Write the JSON Schema of every file format, for editors and other tools."""
    for name in FORMATS:
        path = options.folder / f"{name}.json"
        replace_text(path, schema_text(name))
        print(path)
    return EXIT_OK


def schema_text(name: str) -> str:
    """Return the JSON Schema of one of FORMATS as the text of a file."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **FORMATS[name].model_json_schema()}
    return json_text(schema)
