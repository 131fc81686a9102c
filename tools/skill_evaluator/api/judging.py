"""`library.judge`: what a user does with judges. The commands `judge …` use it, too."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skill_evaluator.audit.request import ScenariosDraftRequest
from skill_evaluator.audit.run.drafting import draft_scenarios
from skill_evaluator.checking.rubrics import RubricLint, lint_rubrics
from skill_evaluator.display.options import request_of
from skill_evaluator.errors import ConfigError
from skill_evaluator.judges.modes.run_outputs import pin_outputs
from skill_evaluator.judges.prompting.session import JudgeRunSize
from skill_evaluator.judges.review.items import items_from
from skill_evaluator.judges.review.queue import export_labels, queue_in
from skill_evaluator.judges.review.server import ReviewServer
from skill_evaluator.judges.workflows.calibration import calibrate
from skill_evaluator.judges.workflows.case_drafting import CasesDraftRequest, DraftedCases, draft_cases
from skill_evaluator.judges.workflows.drafting import draft_rubric
from skill_evaluator.judges.workflows.judging import Judged, judge
from skill_evaluator.judges.workflows.requests import (
    CalibrateRequest,
    JudgedRequest,
    PairwiseRequest,
    RegressionRequest,
    RubricDraftRequest,
    ScoreRequest,
)
from skill_evaluator.library.cases import load_cases
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import load_settings
from skill_evaluator.library.rubrics import find_rubrics
from skill_evaluator.records.pinned import PinReport
from skill_evaluator.reports.judge_calibration import bias_report
from skill_evaluator.reports.judge_results import bias_page
from skill_evaluator.runner.journal import find_run, read_component_manifest
from skill_evaluator.runner.session import Watch


class Judges:
    """Judge with models: `Library.judge`.

    A method that calls models takes the options of its command, as keywords or as a request. `watch` shows progress; by
    default nothing is shown. A dry run returns the size of the judge run.

    >>> from skill_evaluator import Library
    >>> rubric, outputs = Path(".evaluator/rubrics/tone.yaml"), Path("outputs.jsonl")
    >>> Library().judge.score(rubric=rubric, items=outputs, judges=("gpt-5",)).results  # doctest: +SKIP
    """

    def __init__(self, components: Path, config: Path, fixtures: Path | None) -> None:
        """Take the folders of the library."""
        self.components, self.config, self.fixtures = components, config, fixtures

    def score(self, request: ScoreRequest | None = None, **how: Any) -> Judged | JudgeRunSize:
        """Score outputs by a rubric, as `judge score` does."""
        return self._judge(ScoreRequest, request, **how)

    def pairwise(self, request: PairwiseRequest | None = None, **how: Any) -> Judged | JudgeRunSize:
        """Compare outputs two by two, in both orders, as `judge pairwise` does."""
        return self._judge(PairwiseRequest, request, **how)

    def regression(self, request: RegressionRequest | None = None, **how: Any) -> Judged | JudgeRunSize:
        """Compare new outputs with those in use, as `judge regression` does; code decides what ships."""
        return self._judge(RegressionRequest, request, **how)

    def _judge(
        self,
        kind: type[JudgedRequest],
        request: JudgedRequest | None,
        *,
        watch: Watch | None = None,
        **options: Any,
    ) -> Judged | JudgeRunSize:

        asked = request or request_of(kind, self, **options)
        return judge(asked, watch, bias_page)

    def calibrate(
        self, request: CalibrateRequest | None = None, *, watch: Watch | None = None, **options: Any
    ) -> Judged | JudgeRunSize:
        """Measure judges against human labels, as `judge calibrate` does; named judges are called."""
        asked = request or request_of(CalibrateRequest, self, **options)
        return calibrate(asked, watch, bias_report)

    def rubric(self, request: RubricDraftRequest, *, watch: Watch | None = None) -> RubricLint | JudgeRunSize:
        """Have a model draft a rubric, and return its `judge lint` findings, as `judge rubric` does."""
        return draft_rubric(request, watch) or self.lint([request.out])

    def scenarios(self, request: ScenariosDraftRequest, *, watch: Watch | None = None) -> Path | JudgeRunSize:
        """Have a model draft a family of scenarios and return its folder, as `scenarios draft` does."""
        return draft_scenarios(request, watch)

    def cases(self, request: CasesDraftRequest, *, watch: Watch | None = None) -> DraftedCases | JudgeRunSize:
        """Have a model draft cases of a component, marked as unreviewed, as `cases draft` does."""
        return draft_cases(request, watch)

    def lint(self, files: Sequence[Path] = ()) -> RubricLint:
        """Check rubrics, by default all of the configuration, as `judge lint` does."""
        paths = list(dict.fromkeys(files)) or find_rubrics(self.config)
        if not paths:
            raise ConfigError(f"{self.config / 'rubrics'} holds no rubric; add one, or name a file")
        return lint_rubrics(paths, follow_links=load_settings(self.config).limits.follow_links)

    def pin(self, run: str, cases: Sequence[str] = ()) -> PinReport:
        """Keep a run's first answers in the repository, as the baseline of later judgements; `cases` are patterns."""
        folder = find_run(run, self.components)
        skill, limits = read_component_manifest(folder).skill, load_settings(self.config).limits
        component = load_component(self.components, skill, limits, self.fixtures)
        return pin_outputs(folder, component, load_cases(component, self.fixtures, cases))

    def queue_for_review(
        self, file: Path, dimensions: Sequence[str] = (), *, sample: int | None = None, seed: int = 0
    ) -> tuple[int, int]:
        """Queue the pairs of a file, or a random sample, for people to label. Adding twice changes nothing.

        `dimensions` are those in which a candidate is compared with its baseline. Return the number of new items, and
        of items that were queued already.
        """
        items = items_from(file, dimensions)
        if sample is not None:
            items = random.Random(seed).sample(items, min(sample, len(items)))  # noqa: S311 (no secret)
        fresh = len(queue_in(self.config).add(items))
        return fresh, len(items) - fresh

    def review_page(self, port: int = 0) -> ReviewServer:
        """Return the server of the review page, for this machine alone. Port 0 takes a free port."""
        queue = queue_in(self.config, begun=True)
        queue.labels(queue.items())  # reports an invalid label before the page is opened
        return ReviewServer(queue, port)

    def export_labels(self, file: Path) -> tuple[int, int, int]:
        """Add the labels on which reviewers agree to a file of labels that `judge calibrate` reads.

        Return the number of labels, of questions without a majority, and of items that were not drawn at random.
        """
        return export_labels(queue_in(self.config, begun=True), file)
