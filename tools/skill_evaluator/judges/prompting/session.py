"""The session of a command that calls judges: estimate the calls, or make them and journal their outputs."""

import datetime
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from skill_evaluator import __version__
from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.prompting.judging import (
    JUDGING,
    RUNS,
    JudgeRun,
    JudgeTask,
    judge_runs,
    resumed_judge_run,
    write_judge_run,
)
from skill_evaluator.judges.prompting.questions import question_sizes
from skill_evaluator.judges.prompting.reading import commonest_failure
from skill_evaluator.judges.prompting.results import JudgeRecord, record_of
from skill_evaluator.judges.workflows.requests import BatchJudgeRequest, JudgeRequest
from skill_evaluator.library.config import Model, select_models
from skill_evaluator.providers import Configuration, key_note, read_configuration, refuse_unbatched
from skill_evaluator.providers.base import Failure
from skill_evaluator.runner.engine import CallHandlers
from skill_evaluator.runner.journal import Run, Transport, check_writable, new_invocation, outcomes, settings_digest
from skill_evaluator.runner.limits import Budget
from skill_evaluator.runner.prices import COST_OF_BATCHES, ModelEstimate, estimate, price_of, refuse_unpriced
from skill_evaluator.runner.schedule import Call, Replicate, refuse_amounts
from skill_evaluator.runner.session import Session, Watch, no_progress, with_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRunSize:
    """The size of a judge run; `notes` are sentences about its calls."""

    judging: JudgeRun
    judges: Sequence[ModelEstimate]
    notes: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCalls:
    """One judge of a judge run: its outputs by call, and the failure that stopped its calls, or None."""

    run: Run
    answers: Mapping[Call, Replicate]
    stopped: Failure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeResults:
    """A judge run after its calls, with its folder and its session."""

    judging: JudgeRun
    folder: Path
    runs: Sequence[JudgeCalls]
    session: Session

    @property
    def complete(self) -> bool:
        """Whether every judge was called and reached the share of answered calls that `required_coverage` demands."""
        planned = len(self.judging.questions) * self.judging.replicates
        required = self.session.configuration.settings.required_coverage * planned
        return len(self.runs) == len(self.judging.judges) and all(
            run.stopped is None and sum(call.answered for call in run.answers.values()) >= required for run in self.runs
        )

    @property
    def stopped(self) -> list[str]:
        """The reasons why calls were not made or failed, one sentence per judge."""
        stopped_judges = [f"{run.run.model.id} stopped: {run.stopped}" for run in self.runs if run.stopped is not None]
        failures = [(run.run.model.id, commonest_failure(run.answers.values())) for run in self.runs]
        return [*stopped_judges, *(f"{model_id} failed: {failure}" for model_id, failure in failures if failure)]

    def record_of(self, part: JudgeCalls) -> JudgeRecord:
        """Return the record of a judge and its calls."""
        model, stopped = part.run.model, part.stopped
        price = price_of(model, self.session.configuration.kinds[model.provider])
        return record_of(part.run, part.answers, price, None if stopped is None else stopped.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSession:
    """The judges of a command and its options. `watch` shows progress; None shows nothing."""

    request: JudgeRequest
    configuration: Configuration
    models: Sequence[Model]
    watch: Watch | None = None

    @classmethod
    def of(
        cls, request: JudgeRequest, watch: Watch | None = None, judges: tuple[str, ...] | None = None
    ) -> "JudgeSession":
        """Read the configuration and the judges; `judges` replaces those of the request.

        Raise ConfigError or JudgeError for invalid input.
        """
        counts = {"--replicates": request.replicates, "--concurrency": request.concurrency}
        refuse_amounts(counts, request.max_calls, request.max_cost)
        if request.dry_run and request.resumed is not None:
            raise JudgeError("--dry-run cannot be combined with --resume or --judge-run")
        configuration = read_configuration(request.config)
        judge_ids = judges or request.judges
        if not judge_ids:
            ids = ", ".join(model.id for model in configuration.models)
            raise JudgeError(f"no judge: name one of models.yaml with --judge ID, such as {ids}")
        models = select_models(configuration.models, judge_ids)
        judge_session = cls(request=request, configuration=configuration, models=models, watch=watch)
        if judge_session.transport == "batch":
            refuse_unbatched(models)
        if request.max_cost is not None:
            refuse_unpriced(models, configuration.kinds)
        for model in models:
            if model.profile != "deterministic":
                print(f"warning: the judge {model.id} has profile: {model.profile}; its verdicts vary", file=sys.stderr)
        return judge_session

    @property
    def transport(self) -> Transport:
        """The transport of the calls."""
        return "batch" if isinstance(self.request, BatchJudgeRequest) and self.request.batch else "direct"

    def planned(self, task: JudgeTask) -> JudgeRun:
        """Return a new judge run of these questions. Raise JudgeError if two questions have the same id."""
        questions: dict[str, str] = {}
        for question in task.questions:
            if question.case_id in questions:
                raise JudgeError(f"two questions have the id '{question.case_id}'; rename the items")
            questions[question.case_id] = question.digest
        created = datetime.datetime.now(datetime.UTC)
        return JudgeRun.view(
            task,
            id=new_invocation(created),
            created=f"{created:%Y-%m-%dT%H:%M:%SZ}",
            prompts=[prompt.identity for prompt in task.prompts],
            judges={model.id: settings_digest(model) for model in self.models},
            questions=questions,
            seed=self.request.seed,
            replicates=self.request.replicates,
            transport=self.transport,
            evaluator_version=__version__,
        )

    def size(self, task: JudgeTask) -> JudgeRunSize:
        """Estimate the size of a judge run. This requires no key, makes no call and writes nothing."""
        _print_warnings(task)
        sizes, batch = question_sizes(task.questions), self.transport == "batch"
        judges = []
        for model in self.models:
            kind = self.configuration.kinds[model.provider]
            key = key_note(model, kind, self.configuration.keys)
            amounts = asdict(estimate(sizes, model, kind, self.request.replicates, batch=batch))
            judges.append(ModelEstimate(model_id=model.id, provider=model.provider, key=key, **amounts))
        notes = [*task.notes, *([COST_OF_BATCHES] if batch else [])]
        return JudgeRunSize(judging=self.planned(task), judges=judges, notes=notes)

    def session(self, *, budget: Budget | None = None) -> Session:
        """Return a session that calls models within a budget; None means the budget of the request."""
        return Session(
            configuration=self.configuration,
            watch=self.watch or no_progress,
            budget=budget or Budget(self.request.max_cost, self.request.max_calls),
            concurrency=self.request.concurrency,
        )

    def begin(self, task: JudgeTask, stage_folder: Path | None = None) -> tuple[JudgeRun, Path, list[Model]]:
        """Start or resume a judge run. Return it with its folder and the models that have a key."""
        judging = self.planned(task)
        folder, resumed = stage_folder or self.request.out / judging.id, self.request.resumed
        if stage_folder is not None:
            resumed = str(stage_folder) if (stage_folder / JUDGING).exists() else None
        if resumed is not None:
            judging, folder = resumed_judge_run(judging, resumed, self.request.out)
        models = list(with_keys(self.models, self.configuration).values())
        check_writable(folder / RUNS, "--out DIR")
        if resumed is None:
            write_judge_run(folder, judging)
        return judging, folder, models

    def ask(
        self,
        task: JudgeTask,
        *,
        stage_folder: Path | None = None,
        budget: Budget | None = None,
        on_outcome: Callable[[Run, Replicate], None] = lambda run, replicate: None,
    ) -> JudgeResults:
        """Make all calls that have no output yet; `stage_folder` is the folder of a cascade's second stage.

        `on_outcome` gets every outcome as soon as it is saved. Raise JudgeError if the judge run cannot be resumed.
        """
        _print_warnings(task)
        judging, folder, models = self.begin(task, stage_folder)
        session = self.session(budget=budget)
        runs = judge_runs(judging, models, folder)
        questions = {question.case_id: question for question in task.questions}
        handlers = CallHandlers(
            request_for=lambda run, call: questions[call.case_id].request(
                call.replicate, run.manifest.seed, run.model.params.max_output_tokens
            ),
            on_outcome=on_outcome,
        )
        halted = session.make_calls(runs, handlers)
        parts = [JudgeCalls(run=run, answers=outcomes(run.folder), stopped=halted[run.manifest.run_id]) for run in runs]
        return JudgeResults(judging=judging, folder=folder, runs=parts, session=session)


def _print_warnings(task: JudgeTask) -> None:
    for warning in task.warnings:
        print(f"warning: {warning}", file=sys.stderr)
