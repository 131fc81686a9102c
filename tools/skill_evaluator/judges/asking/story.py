"""The story of every command that asks judges: its size, or the calls through the one runner.

Its own module because scores, comparisons, regressions and calibrations differ only in what they ask and how they read
the answers.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.judging import JUDGING, RUNS, Asking, Judging, judge_runs, taken_up, write_judging
from skill_evaluator.judges.asking.options import JudgingRequest
from skill_evaluator.judges.asking.questions import question_sizes
from skill_evaluator.judges.asking.reading import commonest_failure
from skill_evaluator.judges.asking.results import JudgeRecord, record_of
from skill_evaluator.library.config import Model, select_models
from skill_evaluator.providers import Configuration, key_note, read_configuration, refuse_unbatched
from skill_evaluator.providers.base import Failure
from skill_evaluator.runner.engine import Stop
from skill_evaluator.runner.journal import outcomes
from skill_evaluator.runner.limits import Budget
from skill_evaluator.runner.prices import COST_OF_BATCHES, Estimate, estimate, price_of, refuse_unpriced
from skill_evaluator.runner.runs import Run, check_writable
from skill_evaluator.runner.schedule import Call, Replicate, refuse_amounts
from skill_evaluator.runner.session import Questions, Session, Watch, with_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSize:
    """What one judge is asked, and whether its key is there."""

    model_id: str
    provider: str
    key: str
    estimate: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingSize:
    """What a judging would take of each judge; `notes` are sentences about how its calls come about."""

    judging: Judging
    judges: Sequence[JudgeSize]
    notes: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRun:
    """One judge's part of a judging that was asked: its answers by call, and why calls were left unmade."""

    run: Run
    answers: Mapping[Call, Replicate]
    stopped: Failure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedJudging:
    """A judging once its calls were made, with the folder it lies in; the session's budget has what is left."""

    judging: Judging
    folder: Path
    runs: Sequence[JudgeRun]
    session: Session

    @property
    def complete(self) -> bool:
        """Whether every judge was asked, and answered as much as `required_coverage` demands."""
        required = self.session.configuration.settings.required_coverage
        planned = len(self.judging.questions) * self.judging.replicates
        answered = [sum(replicate.answered for replicate in run.answers.values()) for run in self.runs]
        return len(self.runs) == len(self.judging.judges) and all(
            run.stopped is None and count >= required * planned for run, count in zip(self.runs, answered, strict=True)
        )

    @property
    def stopped(self) -> list[str]:
        """Why calls were left unmade, or failed, a sentence a judge."""
        halted = [(run.run.model.id, run.stopped) for run in self.runs if run.stopped is not None]
        failed = [(run.run.model.id, commonest_failure(run.answers.values())) for run in self.runs]
        return [
            *(f"{model_id} stopped: {failure.reason}: {failure.message}" for model_id, failure in halted),
            *(f"{model_id} failed: {words}" for model_id, words in failed if words),
        ]

    def record_of(self, part: JudgeRun) -> JudgeRecord:
        """Return what the results say of a judge and its calls."""
        model, stopped = part.run.model, part.stopped
        price = price_of(model, self.session.configuration.kinds[model.provider])
        return record_of(part.run, part.answers, price, None if stopped is None else stopped.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The judges that are asked, and how. `watch` shows how the calls go; without it nothing is shown."""

    request: JudgingRequest
    configuration: Configuration
    models: Sequence[Model]
    watch: Watch | None = None

    @classmethod
    def of(
        cls,
        request: JudgingRequest,
        watch: Watch | None = None,
        judges: tuple[str, ...] | None = None,
    ) -> "Bench":
        """Read the configuration and the judges, by default those of the request; raise ConfigError or JudgeError."""
        named = request.judges if judges is None else judges
        counts = {"--replicates": request.replicates, "--concurrency": request.concurrency}
        refuse_amounts(counts, request.max_calls, request.max_cost)
        if request.dry_run and request.resume is not None:
            raise JudgeError("--dry-run cannot be combined with --resume")
        batch = request.transport == "batch"
        configuration = read_configuration(request.config)
        if not named:
            names = ", ".join(model.id for model in configuration.models)
            raise JudgeError(f"no judge: name one of models.yaml with --judge ID, such as {names}")
        models = select_models(configuration.models, named)
        if batch:
            refuse_unbatched(models)
        if request.max_cost is not None:
            refuse_unpriced(models, configuration.kinds)
        for model in models:
            if model.profile != "deterministic":
                print(f"warning: the judge {model.id} has profile: {model.profile}; its verdicts vary", file=sys.stderr)
        return cls(request=request, configuration=configuration, models=models, watch=watch)

    def planned(self, asking: Asking) -> Judging:
        """Return what is to be asked, as a new judging."""
        request = self.request
        return asking.judging(
            self.models,
            seed=request.seed,
            replicates=request.replicates,
            transport=request.transport,
        )

    def size(self, asking: Asking) -> JudgingSize:
        """Return what the judging would take of each judge; needs no key, makes no call and writes nothing."""
        _warn(asking)
        sizes, batch = question_sizes(asking.questions), self.request.transport == "batch"
        kinds = {model.id: self.configuration.kinds[model.provider] for model in self.models}
        judges = [
            JudgeSize(
                model_id=model.id,
                provider=model.provider,
                key=key_note(model, kinds[model.id], self.configuration.keys),
                estimate=estimate(sizes, model, kinds[model.id], self.request.replicates, batch=batch),
            )
            for model in self.models
        ]
        notes = [*asking.notes, *([COST_OF_BATCHES] if batch else [])]
        return JudgingSize(judging=self.planned(asking), judges=judges, notes=notes)

    def session(self, *, budget: Budget | None = None) -> Session:
        """Return a session that calls models within a budget; the default is that of the options."""
        request = self.request
        return Session(
            configuration=self.configuration,
            watch=self.watch or _unseen,
            budget=budget or Budget(request.max_cost, request.max_calls),
            concurrency=request.concurrency,
        )

    def ask(self, asking: Asking, *, inside: Path | None = None, budget: Budget | None = None) -> AskedJudging:
        """Ask every judge every question that has no answer yet; raise JudgeError where `--resume` does not fit.

        `inside`: the folder of a further stage of a judging, which goes on where that stage stopped. `budget`: what
        other calls have left; default: what the options allow.
        """
        _warn(asking)
        request = self.request
        judging = self.planned(asking)
        folder = inside or request.out / judging.id
        resumed = request.resume if inside is None else str(inside) if (inside / JUDGING).exists() else None
        if resumed is not None:
            judging, folder = taken_up(judging, resumed, request.out)
        usable = list(with_keys(self.models, self.configuration).values())
        session = self.session(budget=budget)
        check_writable(folder / RUNS, "--out DIR")
        if not (folder / JUDGING).exists():
            write_judging(folder, judging)
        runs = judge_runs(judging, usable, folder)
        questions = {question.case_id: question for question in asking.questions}
        ask = Questions(
            request_for=lambda run, call: questions[call.case_id].request(
                call.replicate, run.manifest.seed, run.model.params.max_output_tokens
            )
        )
        asked = session.ask(runs, ask)  # answers are read when all are there; until then the journal has them
        return AskedJudging(
            judging=judging,
            folder=folder,
            runs=[
                JudgeRun(run=run, answers=outcomes(run.folder), stopped=asked.halted[run.manifest.run_id])
                for run in runs
            ],
            session=session,
        )


def _warn(asking: Asking) -> None:
    for warning in asking.warnings:
        print(f"warning: {warning}", file=sys.stderr)


async def _unseen(_: object, stop: Stop) -> None:
    await stop.event.wait()
