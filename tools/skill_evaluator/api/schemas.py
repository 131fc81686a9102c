"""The JSON Schema of every file format, from the pydantic model of the file or of one line."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from skill_evaluator.files import json_text, replace_text

FORMATS: Mapping[str, str] = {
    "models": "skill_evaluator.library.config.Models",
    "settings": "skill_evaluator.library.config.Settings",
    "prompt-front-matter": "skill_evaluator.library.prompts.FrontMatter",
    "scenario-front-matter": "skill_evaluator.library.scenarios.ScenarioFrontMatter",
    "datasets": "skill_evaluator.library.components.Datasets",
    "question": "skill_evaluator.library.cases.Question",
    "manifest": "skill_evaluator.runner.journal.Manifest",
    "batches": "skill_evaluator.runner.batch.BatchLine",
    "record": "skill_evaluator.records.record.Record",
    "leaderboard": "skill_evaluator.records.archive.Leaderboard",
    "accepted": "skill_evaluator.records.archive.AcceptedVersions",
    "plan": "skill_evaluator.ci.plan.Plan",
    "outcome": "skill_evaluator.ci.plan.Outcome",
    "doctor": "skill_evaluator.ci.linting.DoctorReport",
    "comparison": "skill_evaluator.verdicts.decide.results.ComparisonResult",
    "history": "skill_evaluator.verdicts.shipping.History",
    "ranking": "skill_evaluator.verdicts.shipping.ModelRanking",
    "mutation": "skill_evaluator.evaluation.mutation.MutationResult",
    "audit": "skill_evaluator.audit.manifest.AuditManifest",
    "audit-report": "skill_evaluator.audit.results.AuditResult",
    "scenarios": "skill_evaluator.audit.family.FamilyCheck",
    "rubric": "skill_evaluator.library.rubrics.Rubric",
    "rubric-levels": "skill_evaluator.library.rubrics.RubricLevels",
    "rubric-lint": "skill_evaluator.checking.lint.RubricLint",
    "judging": "skill_evaluator.judges.judge_run.JudgeRun",
    "judge-score-item": "skill_evaluator.judges.prompting.questions.OutputItem",
    "judge-scores": "skill_evaluator.judges.modes.scoring.ScoreResults",
    "judge-pair-item": "skill_evaluator.judges.modes.pairwise.PairItem",
    "judge-pairs": "skill_evaluator.judges.modes.pairwise.PairwiseResults",
    "judging-item": "skill_evaluator.judges.calibration.labels.LabelledPair",
    "judging-verdict": "skill_evaluator.judges.judge_run.StoredVerdict",
    "judging-scored-item": "skill_evaluator.judges.calibration.labels.ScoredItem",
    "judging-score": "skill_evaluator.judges.judge_run.StoredScore",
    "judge-regression-item": "skill_evaluator.judges.modes.regression.RegressionItem",
    "judge-regression-answer": "skill_evaluator.judges.modes.regression.Conclusion",
    "judge-regression": "skill_evaluator.judges.modes.regression.RegressionResults",
    "pinned": "skill_evaluator.judges.modes.run_outputs.PinnedOutputs",
    "judge-pin": "skill_evaluator.judges.modes.run_outputs.PinReport",
    "judge-calibration": "skill_evaluator.judges.calibration.results.JudgeCalibration",
    "judge-corrupted": "skill_evaluator.judges.calibration.corruption.CorruptedPair",
    "judge-regression-label": "skill_evaluator.judges.calibration.labels.RegressionLabel",
    "judge-sentence-label": "skill_evaluator.judges.calibration.labels.SentenceLabel",
    "review-item": "skill_evaluator.judges.review.queue.ReviewItem",
    "review-label": "skill_evaluator.judges.review.queue.ReviewLabel",
}
"""The pydantic model of a file, or of one line of it, by format name."""
EDITED = ("models", "settings", "rubric", "datasets")
"""The formats of files that people write and that name their schema, for editors."""


def schema_text(name: str) -> str:
    """Return the JSON Schema of one of FORMATS as the text of a file."""
    module, _, model = FORMATS[name].rpartition(".")
    of_model: Any = getattr(import_module(module), model)
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **of_model.model_json_schema()}
    return json_text(schema)


def edited_schemas() -> dict[str, str]:
    """Return the schemas of the files that people write, by name."""
    return {name: schema_text(name) for name in EDITED}


def write_schemas(folder: Path) -> Iterator[Path]:
    """Write the schema of every format into a folder, and yield the path of each."""
    for name in FORMATS:
        path = folder / f"{name}.json"
        replace_text(path, schema_text(name))
        yield path
