"""The story of every command that asks judges: size, or runs through the one runner.

Its own module because `judge score`, `judge pairwise` and `judge regression` differ only in what they ask and how they
read the answers.
"""

import datetime
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skill_evaluator.commands.judge_options import BatchAskingOptions, JudgeAskingOptions
from skill_evaluator.display.options import COMPONENTS
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, JudgeError
from skill_evaluator.judges.asking.judging import (
    JUDGING,
    RUNS,
    JudgeMode,
    Judging,
    draw_judging,
    judge_answers,
    judge_runs,
    taken_up,
    write_judging,
)
from skill_evaluator.judges.asking.questions import JudgePrompt, JudgeQuestion, question_sizes
from skill_evaluator.judges.asking.results import JudgeRecord, record_of
from skill_evaluator.judges.people.items import Doubts, for_people
from skill_evaluator.judges.people.queue import queue_in
from skill_evaluator.library.config import Model, select_models
from skill_evaluator.providers import Configuration, key_note, read_configuration, refuse_unbatched
from skill_evaluator.providers.base import Failure
from skill_evaluator.reports.judging import JudgeSize, print_judging_size
from skill_evaluator.reports.live import watch
from skill_evaluator.runner.limits import Budget
from skill_evaluator.runner.prices import COST_OF_BATCHES, estimate, price_of, refuse_unpriced
from skill_evaluator.runner.runs import Run, check_writable, new_invocation
from skill_evaluator.runner.schedule import Call, Replicate, refuse_amounts, refuse_submit_only
from skill_evaluator.runner.session import Questions, Session, print_how_to_go_on, refuse_pending, with_keys
from skill_evaluator.text import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What a mode asks: its questions, and what they were made from. `items`: by id, a digest of the texts.

    `notes` are sentences for the dry run, `warnings` for every run. `judging_id` is that of the judging where something
    else has fixed it, such as a plan.
    """

    mode: JudgeMode
    rubric: str
    criteria: Sequence[str]
    prompts: Sequence[JudgePrompt]
    items: Mapping[str, str]
    questions: Sequence[JudgeQuestion]
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    judging_id: str | None = None
    skill: str | None = None

    def warn(self) -> None:
        """Print the warnings to stderr, a line each."""
        for warning in self.warnings:
            print(f"warning: {warning}", file=sys.stderr)

    @property
    def systems(self) -> list[str]:
        """The instructions that judges are sent, each once."""
        return list(dict.fromkeys(question.system for question in self.questions))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRun:
    """One judge's part of a judging that was asked: its answers by call, and why calls were left unmade."""

    run: Run
    answers: Mapping[Call, Replicate]
    stopped: Failure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedJudging:
    """A judging once its calls were made, with the folder it lies in; `budget` has what is left for other calls."""

    judging: Judging
    folder: Path
    runs: Sequence[JudgeRun]
    configuration: Configuration
    budget: Budget

    @property
    def complete(self) -> bool:
        """Whether every judge was asked, and answered as much as `required_coverage` demands."""
        required = self.configuration.settings.required_coverage
        planned = len(self.judging.questions) * self.judging.replicates
        answered = [sum(replicate.answered for replicate in run.answers.values()) for run in self.runs]
        return len(self.runs) == len(self.judging.judges) and all(
            run.stopped is None and count >= required * planned for run, count in zip(self.runs, answered, strict=True)
        )

    def record_of(self, part: JudgeRun) -> JudgeRecord:
        """Return what the results say of a judge and its calls."""
        model, stopped = part.run.model, part.stopped
        price = price_of(model, self.configuration.kinds[model.provider])
        return record_of(part.run, part.answers, price, None if stopped is None else stopped.reason)

    def close(self, words: Sequence[str]) -> int:
        """Say on stderr how to go on where the judging stopped, by these words; return the exit code."""
        for run in self.runs:
            if run.stopped is not None:
                print(f"{run.run.model.id} stopped: {run.stopped.reason}: {run.stopped.message}", file=sys.stderr)
        if self.complete:
            return EXIT_OK
        print_how_to_go_on([*words, "--resume", str(self.folder)])
        return EXIT_INCOMPLETE


def judges_of(options: JudgeAskingOptions) -> tuple[Configuration, tuple[Model, ...]]:
    """Read the configuration and the judges it is asked for; raise ConfigError or JudgeError for what is wrong."""
    counts = {"--replicates": options.replicates, "--concurrency": options.concurrency}
    refuse_amounts(counts, options.max_calls, options.max_cost)
    if options.dry_run and options.resume is not None:
        raise JudgeError("--dry-run cannot be combined with --resume")
    collecting = None
    if isinstance(options, BatchAskingOptions):
        refuse_submit_only(submit_only=options.submit_only, batch=options.batch, resume=options.resume)
        collecting = options.collecting
    configuration = collecting or read_configuration(options.config)
    if not options.judges:
        names = ", ".join(model.id for model in configuration.models)
        raise JudgeError(f"no judge: name one of models.yaml with --judge ID, such as {names}")
    models = select_models(configuration.models, options.judges)
    if options.transport == "batch":
        refuse_unbatched(models)
    if options.max_cost is not None:
        refuse_unpriced(models, configuration.kinds)
    for model in models:
        if model.profile != "deterministic":
            print(f"warning: the judge {model.id} has profile: {model.profile}; its verdicts vary", file=sys.stderr)
    return configuration, models


def plan_judging(asking: Asking, models: Sequence[Model], options: JudgeAskingOptions) -> Judging:
    """Return what is to be asked, as a new judging."""
    now = datetime.datetime.now(datetime.UTC)
    return draw_judging(
        asking.mode,
        skill=asking.skill,
        judging_id=asking.judging_id or new_invocation(now),
        created=f"{now:%Y-%m-%dT%H:%M:%SZ}",
        rubric=asking.rubric,
        criteria=asking.criteria,
        prompts=[prompt.identity for prompt in asking.prompts],
        models=models,
        items=asking.items,
        questions=asking.questions,
        seed=options.seed,
        replicates=options.replicates,
        transport=options.transport,
        options=options.remembered if isinstance(options, BatchAskingOptions) and options.batch else {},
    )


def print_dry_run(
    asking: Asking, configuration: Configuration, models: Sequence[Model], options: JudgeAskingOptions
) -> int:
    """Print what the judging would take of each judge; needs no key, makes no call and writes nothing."""
    asking.warn()
    judging, sizes = plan_judging(asking, models, options), question_sizes(asking.questions)
    judges = []
    for model in models:
        kind = configuration.kinds[model.provider]
        judges.append(
            JudgeSize(
                model_id=model.id,
                provider=model.provider,
                key=key_note(model, kind, configuration.keys),
                estimate=estimate(sizes, model, kind, options.replicates, batch=options.transport == "batch"),
            )
        )
    notes = [*asking.notes, *([COST_OF_BATCHES] if options.transport == "batch" else [])]
    print_judging_size(judging, judges, notes, options.format)
    return EXIT_OK


def ask_judges(
    asking: Asking,
    configuration: Configuration,
    models: Sequence[Model],
    options: JudgeAskingOptions,
    inside: Path | None = None,
    budget: Budget | None = None,
    further: Sequence[Model] = (),
) -> AskedJudging:
    """Ask every judge every question that has no answer yet; raise JudgeError where `--resume` does not fit.

    Raise PendingError where answers are in batches that are not waited for.

    `inside`: the folder of a further stage of a judging, which goes on where that stage stopped. `budget`: what other
    calls have left; default: what the options and the month's cap allow these models and any `further` ones.
    """
    asking.warn()
    judging = plan_judging(asking, models, options)
    folder = inside or options.out / judging.id
    resumed = options.resume if inside is None else str(inside) if (inside / JUDGING).exists() else None
    if resumed is not None:
        judging, folder = taken_up(judging, resumed, options.out)
    usable = list(with_keys(models, configuration).values())
    session = Session(
        configuration=configuration,
        watch=watch,
        budget=budget or Budget(options.max_cost, options.max_calls),
        concurrency=options.concurrency,
        mode=options.batch_mode(begun=resumed is not None),
    )
    if budget is None:
        components = options.config.parent / COMPONENTS
        session.hold_month([*usable, *further], config=options.config, components=components, folder=folder)
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
    refuse_pending(asked.pending)
    return AskedJudging(
        judging=judging,
        folder=folder,
        runs=[JudgeRun(run=run, answers=judge_answers(run), stopped=asked.halted[run.manifest.run_id]) for run in runs],
        configuration=configuration,
        budget=session.budget,
    )


def leave_to_people(asked: AskedJudging, options: JudgeAskingOptions, doubts: Callable[[], Doubts]) -> None:
    """Queue what is in doubt, and a sample of the rest, if --review says so and the judging is complete."""
    if not options.review:
        return
    if not asked.complete:
        print("nothing is queued for people until the judging is complete", file=sys.stderr)
        return
    queue = queue_in(options.config)
    fresh = queue.add(for_people(doubts(), options.review_sample, asked.judging.seed))
    print(f"{counted(len(fresh), 'item')} queued for people in {queue.folder}", file=sys.stderr)
