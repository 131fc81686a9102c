"""`library.judge`: what a user does with judges. The commands `judge …` use it, too."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar, Unpack, get_type_hints

from skill_evaluator.checking.lint import RubricLint, lint_rubrics
from skill_evaluator.ci.platforms import refuse_fetched
from skill_evaluator.errors import ConfigError
from skill_evaluator.files import replace_text
from skill_evaluator.judges.modes.run_outputs import PinReport, pin_outputs
from skill_evaluator.judges.prompting.judging import BIAS, Judged, JudgeRunSize
from skill_evaluator.judges.review.queue import ReviewServer, export_labels, items_from, queue_in
from skill_evaluator.judges.statistics import BAR
from skill_evaluator.judges.workflows import requests
from skill_evaluator.judges.workflows.calibration import calibrate
from skill_evaluator.judges.workflows.drafting import DraftedCases, draft_cases, draft_rubric, draft_scenarios
from skill_evaluator.judges.workflows.judging import judge
from skill_evaluator.library.cases import load_cases
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import load_settings
from skill_evaluator.library.options import request_of
from skill_evaluator.library.rubrics import find_rubrics
from skill_evaluator.reports.judge_results import bias_report
from skill_evaluator.runner.journal import find_run, read_component_manifest
from skill_evaluator.runner.session import Watch

_Request = TypeVar("_Request")


class JudgeOptions(TypedDict, total=False):
    """Options of every judge run.

    Attributes:
        judges: The models that judge.
        replicates: Calls per question; their majority counts, or the mean of their scores; default 1. `calibrate`
            compares only the first with the labels.
        seed: Seed of the calls and of the delimiters around judged texts; default 0.
        max_cost: Maximum cost of all models together, in USD.
        max_calls: Maximum calls over all models, without retries.
        concurrency: Concurrent calls per model; default 8, or up to 256 on a private network.
        resume: Continue the newest judge run.
        judge_run: Continue this judge run: its id or folder.
        dry_run: Check the inputs and return the size of the judge run; make no call.
        out: The folder of judge runs; default `judgements`.
        watch: Receives the progress of the calls; default: no output.
    """

    judges: str | Sequence[str]
    replicates: int
    seed: int
    max_cost: float | None
    max_calls: int | None
    concurrency: int | None
    resume: bool
    judge_run: str | None
    dry_run: bool
    out: str | Path
    watch: Watch | None


class JudgedOptions(JudgeOptions, total=False):
    """Options of `score`, `pairwise` and `regression`, in addition to `JudgeOptions`.

    Attributes:
        review: Queue undecided items for human review.
        review_sample: With `review`: also queue this many random items; default 5.
        batch: Use batch APIs: half the price, outputs within a day.
        cascade: `CHEAP,STRONG`, instead of `judges`: call STRONG for the items that CHEAP leaves undecided.
    """

    review: bool
    review_sample: int
    batch: bool
    cascade: str | None


class DraftOptions(TypedDict, total=False):
    """Options of the methods that have a model draft a text.

    Attributes:
        seed: Seed of the calls; default 0.
        max_cost: Maximum cost of the calls, in USD.
        dry_run: Check the inputs and return the size of the calls; make none.
        watch: Receives the progress of the calls; default: no output.
    """

    seed: int
    max_cost: float | None
    dry_run: bool
    watch: Watch | None


class Judges:
    """Judge with models: `Library.judge`. Invalid input raises a SkillEvaluatorError, in most cases JudgeError.

    >>> from skill_evaluator import Library
    >>> rubric, outputs = Path(".evaluator/rubrics/tone.yaml"), Path("outputs.jsonl")
    >>> Library().judge.score(rubric=rubric, items=outputs, judges=("gpt-5",)).results  # doctest: +SKIP
    """

    def __init__(self, components: Path, config: Path, fixtures: Path | None) -> None:
        """Set the folders of the library."""
        self.components, self.config, self.fixtures = components, config, fixtures

    def score(
        self,
        *,
        rubric: str | Path,
        items: str | Path | None = None,
        run: str | None = None,
        field: str = "",
        criteria: str | Sequence[str] = (),
        **options: Unpack[JudgedOptions],
    ) -> Judged | JudgeRunSize:
        """Score outputs by a rubric, as `judge score` does.

        Args:
            rubric: The rubric, YAML or JSON.
            items: JSON Lines: id, input, output, reference or source.
            run: Instead of `items`: a run of a component, folder or id.
            field: With `run`: the field to judge; default: applies_to of the rubric.
            criteria: Only these criteria.
            options: See `JudgedOptions`.

        Returns:
            The judge run with its results, or its size in a dry run.
        """
        return run_judges(_request(requests.ScoreRequest, locals()), options.get("watch"))

    def pairwise(
        self,
        *,
        rubric: str | Path,
        items: str | Path,
        criteria: str | Sequence[str] = (),
        **options: Unpack[JudgedOptions],
    ) -> Judged | JudgeRunSize:
        """Compare outputs two by two, in both orders, as `judge pairwise` does.

        Args:
            rubric: The rubric, YAML or JSON.
            items: JSON Lines: id, input, output_1, output_2.
            criteria: Only these criteria.
            options: See `JudgedOptions`.

        Returns:
            The judge run with its results, or its size in a dry run.
        """
        return run_judges(_request(requests.PairwiseRequest, locals()), options.get("watch"))

    def regression(
        self,
        *,
        items: str | Path | None = None,
        candidate: str | None = None,
        baseline: str | None = None,
        dimensions: str | Sequence[str] = (),
        preset: str = "default",
        stakes: Literal["normal", "high"] = "normal",
        against: str | None = None,
        **options: Unpack[JudgedOptions],
    ) -> Judged | JudgeRunSize:
        """Decide whether new outputs are worse than the baseline's and may ship, as `judge regression` does.

        Args:
            items: JSON Lines: id, prompt, baseline_output, candidate_output.
            candidate: Instead of `items`: a run of a component, folder or id.
            baseline: The run to compare with; default: the pinned outputs.
            dimensions: The dimensions to judge; default: those of the preset.
            preset: A set of dimensions: default, chat, code or checklist.
            stakes: `high`: a person must agree before anything ships.
            against: An earlier judge run to compare the rates of regressions with: folder, id or file.
            options: See `JudgedOptions`.

        Returns:
            The judge run with its results, or its size in a dry run.
        """
        return run_judges(_request(requests.RegressionRequest, locals()), options.get("watch"))

    def calibrate(
        self,
        *,
        labels: str | Path | None = None,
        rubric: str | Path | None = None,
        corrupt: int = 0,
        probes: str | Sequence[str] = (),
        bar: float = BAR,
        verdicts: str | Path | None = None,
        batch: str | Path | None = None,
        **options: Unpack[JudgeOptions],
    ) -> Judged | JudgeRunSize:
        """Measure how well judges agree with human labels, as `judge calibrate` does. Without `judges`, make no call.

        Args:
            labels: JSON Lines of human labels.
            rubric: With `judges`: the rubric by which items are judged.
            corrupt: With `judges`: test whether they detect this many corrupted outputs.
            probes: With `judges`: measure these biases: `verbosity`, `authority`.
            bar: The minimum κ with human labels for a trusted judge.
            verdicts: JSON Lines of stored verdicts, instead of `judges`.
            batch: Results of `judge regression` on the labelled pairs, instead of `judges`.
            options: See `JudgeOptions`.

        Returns:
            The judge run with its results, or its size in a dry run.
        """
        return run_judges(_request(requests.CalibrateRequest, locals()), options.get("watch"))

    def rubric(
        self, *, draft: str, judge: str, out: str | Path, **options: Unpack[DraftOptions]
    ) -> RubricLint | JudgeRunSize:
        """Have a model draft a rubric, as `judge rubric` does.

        Args:
            draft: What should be judged, in a sentence or two.
            judge: The model of models.yaml that drafts.
            out: The new file, .yaml; its name is the id.
            options: See `DraftOptions`.

        Returns:
            The findings of `judge lint` in the draft, or the size of the call in a dry run.
        """
        request = _request(requests.RubricDraftRequest, locals())
        return draft_rubric(request, options.get("watch")) or self.lint([request.out])

    def scenarios(
        self, *, task: str, model: str, family: str | None = None, **options: Unpack[DraftOptions]
    ) -> Path | JudgeRunSize:
        """Have a model draft a family of scenarios, as `scenarios draft` does.

        Args:
            task: The domain, in a few words.
            model: The model of models.yaml that drafts.
            family: The new folder of scenarios; default: a name made from `task`.
            options: See `DraftOptions`.

        Returns:
            The folder of the scenarios, or the size of the call in a dry run.
        """
        return draft_scenarios(_request(requests.ScenariosDraftRequest, locals()), options.get("watch"))

    def draft_cases(
        self, skill: str, *, model: str, count: int = 10, **options: Unpack[DraftOptions]
    ) -> DraftedCases | JudgeRunSize:
        """Have a model draft cases of a component, marked as unreviewed, as `cases draft` does.

        Args:
            skill: The component, by name or folder.
            model: The model of models.yaml that drafts.
            count: The number of cases.
            options: See `DraftOptions`.

        Returns:
            The drafted cases and the number of skipped drafts by reason, or the size of the calls in a dry run.
        """
        refuse_fetched(load_settings(self.config).fixtures, self.fixtures)
        return draft_cases(_request(requests.CasesDraftRequest, locals()), options.get("watch"))

    def lint(self, files: Sequence[Path] = ()) -> RubricLint:
        """Check rubrics, by default all in `.evaluator/rubrics`, as `judge lint` does."""
        paths = list(dict.fromkeys(files)) or find_rubrics(self.config)
        if not paths:
            raise ConfigError(f"{self.config / 'rubrics'} has no rubrics; add one, or name a file")
        return lint_rubrics(paths, load_settings(self.config).limits)

    def pin(self, run: str, cases: Sequence[str] = ()) -> PinReport:
        """Save a run's first output of each case as baseline of `judge regression`. `cases`: ids or patterns."""
        folder = find_run(run, self.components)
        skill, limits = read_component_manifest(folder).skill, load_settings(self.config).limits
        component = load_component(self.components, skill, limits, self.fixtures)
        return pin_outputs(folder, component, load_cases(component, cases))

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
        """Return the server of the review page, which only this machine can reach. Port 0 selects a free port."""
        queue = queue_in(self.config, must_exist=True)
        queue.labels(queue.items())  # reports an invalid label before the page is opened
        return ReviewServer(queue, port)

    def export_labels(self, file: Path) -> tuple[int, int, int]:
        """Write the majority labels and all scores of reviewers to a file that `judge calibrate` reads.

        Only items drawn at random are exported. A label replaces the file's label of the same item (and dimension). If
        there is no label, the file is not written. Return the number of exported lines, of questions without a
        majority, and of labelled items that were not drawn at random.
        """
        return export_labels(queue_in(self.config, must_exist=True), file)


def run_judges(
    request: requests.JudgedRequest | requests.CalibrateRequest, watch: Watch | None
) -> Judged | JudgeRunSize:
    """Judge or calibrate, and write the report on biases into the folder. Return the judge run, or a dry run's size."""
    judged = calibrate(request, watch) if isinstance(request, requests.CalibrateRequest) else judge(request, watch)
    if isinstance(judged, Judged) and judged.results is not None and judged.results.judging is not None:
        replace_text(judged.folder / BIAS, bias_report(judged.results))
    return judged


def _request(kind: type[_Request], arguments: dict[str, Any]) -> _Request:
    options = arguments["options"]
    if unknown := options.keys() - (JudgedOptions.__annotations__.keys() & {"watch", *get_type_hints(kind)}):
        raise TypeError(f"unexpected keyword argument '{min(unknown)}'")
    return request_of(kind, {**arguments, **options})
