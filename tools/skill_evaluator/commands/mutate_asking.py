"""The story of `mutate`: read → damage → ask in batches, look by look → decide each mutant → show.

A batch is all mutants, whose calls take turns with those of the undamaged prompt and its controls. Under a ceiling it
is a few, so that those asked before it is reached are decided. A look decides who is asked further.
"""

import datetime
import sys
from collections.abc import Container, Sequence
from dataclasses import replace

from skill_evaluator import __version__
from skill_evaluator.commands.mutate_inputs import CONTROLS, UNDAMAGED, Hunt, MutateOptions, name_of
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, RunError
from skill_evaluator.evaluation.mutation import Undamaged, judged_mutant, looks_of_mutants, silent_cases, unasked
from skill_evaluator.evaluation.mutation_results import LEAST_REPLICATES, MutantResult, MutationEstimate, MutationResult
from skill_evaluator.library.mutants import Mutant
from skill_evaluator.providers import key_note
from skill_evaluator.providers.base import Request
from skill_evaluator.records.record import Record
from skill_evaluator.reports.live import watch
from skill_evaluator.reports.mutation import print_mutation, print_mutation_estimate
from skill_evaluator.runner.journal import MANIFEST, Manifest, create_run, outcomes
from skill_evaluator.runner.limits import Budget
from skill_evaluator.runner.prices import call_cost, dearest_cost, estimate, input_sizes, most_cost, price_of, sum_of
from skill_evaluator.runner.prompting import build_request
from skill_evaluator.runner.runs import Run, check_writable, input_digests
from skill_evaluator.runner.schedule import Call
from skill_evaluator.runner.session import Questions, Session, with_keys
from skill_evaluator.scoring.answers import AnswerScorer
from skill_evaluator.scoring.parallel import open_scores
from skill_evaluator.scoring.recording import Recorder
from skill_evaluator.scoring.scorer import Scorer, check_truths
from skill_evaluator.stats import load_quantiles, rounded, total_or_none
from skill_evaluator.text import canonical_json, digest
from skill_evaluator.verdicts.decide.rules import rules_for

_UNDER_CEILING = 8  # mutants asked side by side


def size_hunt(plan: Hunt, options: MutateOptions) -> int:
    """Print the mutants and the most that asking them would take, and return the exit code."""
    kind = plan.configuration.kinds[plan.model.provider]
    sizes = [input_sizes(component, plan.cases) for component in plan.asked.values()]
    whole = sum_of([estimate(size, plan.model, kind, options.replicates) for size in sizes])
    print_mutation_estimate(
        MutationEstimate(
            skill=plan.component.name,
            model_id=plan.model.id,
            key=key_note(plan.model, kind, plan.configuration.keys),
            n_cases=len(plan.cases),
            replicates=options.replicates,
            mutants=[unasked(one) for one in plan.mutants],
            left_out=dict(plan.left_out),
            most_calls=whole.calls,
            least_calls=len(sizes) * len(plan.cases) * LEAST_REPLICATES,
            cost_upper_usd=whole.cost_upper_usd,
        ),
        options.format,
    )
    return EXIT_OK


def hunt(plan: Hunt, options: MutateOptions) -> int:
    """Ask, decide, show, and return the exit code."""
    if plan.model.provider == "replay":
        raise RunError(f"'{plan.model.id}' is replayed: its answers are the same whatever the prompt says; ask another")
    with_keys([plan.model], plan.configuration)
    session = Session(
        configuration=plan.configuration,
        watch=watch,
        budget=Budget(options.max_cost, options.max_calls),
        concurrency=options.concurrency,
    )
    session.hold_month([plan.model], config=options.config, components=options.components, folder=plan.folder)
    check_writable(plan.folder, "--results DIR")
    most_calls = len(plan.asked) * len(plan.cases) * options.replicates
    with open_scores(plan.component, plan.cases, most_calls) as scores:
        asking = _Asking(plan, options, scores, session)
        mutants = asking.decide()
    control = [] if asking.undamaged is None else asking.undamaged.moved_by_controls()
    calls, cost = asking.spent(list(plan.asked))
    result = MutationResult(
        skill=plan.component.name,
        skill_version=plan.component.version,
        model_id=plan.model.id,
        n_cases=len(plan.cases),
        replicates=options.replicates,
        alpha=asking.alpha,
        mutants=mutants,
        control=control,
        silent=silent_cases([case.id for case in plan.cases], mutants),
        left_out=dict(plan.left_out),
        calls=calls,
        saved_calls=sum(
            len(plan.cases) * (options.replicates - one.replicates) for one in mutants if one.status == "killed"
        ),
        cost_usd=rounded(cost),
        folder=str(plan.folder),
    )
    print_mutation(result, options.format)
    if not result.count("undecided"):
        return EXIT_OK
    print("the same command goes on where this stopped, and asks nothing twice", file=sys.stderr)
    return EXIT_INCOMPLETE


class _Asking:
    """The calls of a hunt under way: asks some runs up to a look, and makes records of their answers."""

    def __init__(self, plan: Hunt, options: MutateOptions, scores: AnswerScorer, session: Session) -> None:
        self._plan = plan
        self._options = options
        self._scores = scores
        self._asked = plan.asked
        self._session = session
        self._price = price_of(plan.model, plan.configuration.kinds[plan.model.provider])
        self._stopped: str | None = None
        self.undamaged: Undamaged | None = None
        self.alpha = plan.configuration.settings.policy.alpha

    def decide(self) -> list[MutantResult]:
        """Return what became of every mutant, in their order."""
        decided: dict[str, MutantResult] = {}
        mutants = self._plan.mutants
        at_once = _UNDER_CEILING if self._session.budget.has_ceiling else len(mutants)
        for begin in range(0, len(mutants), at_once):
            if self._stopped is None:
                batch = mutants[begin : begin + at_once]
                print(f"mutants {begin + 1} to {begin + len(batch)} of {len(mutants)}", file=sys.stderr)
                decided |= self._decide(list(batch))
        return [decided.get(one.id) or unasked(one, self._stopped) for one in mutants]

    def _decide(self, left: list[Mutant]) -> dict[str, MutantResult]:
        """Ask a batch look by look until each of its mutants is decided, and return those that are, by id."""
        decided: dict[str, MutantResult] = {}
        looks = looks_of_mutants(self._options.replicates)
        for look in looks:
            names = [UNDAMAGED, *CONTROLS, *map(name_of, left)]
            records = self._ask(names, look)
            lacking = [records[name] for name in (UNDAMAGED, *CONTROLS) if not records[name].complete]
            if lacking:
                self._stopped = self._stopped or lacking[0].stopped or "too many answers of the undamaged prompt failed"
                break
            self.undamaged = Undamaged(record=records[UNDAMAGED], controls=tuple(records[name] for name in CONTROLS))
            rules = rules_for(self._plan.configuration.settings, self._options.config, self.undamaged.record)
            self.alpha = rules.alpha
            for mutant in left:
                record = records[name_of(mutant)]
                if not record.complete:
                    failed = record.stopped or f"coverage {record.coverage:.2f} is below what is required"
                    decided[mutant.id] = unasked(mutant, failed, look)
                    continue
                outcome = judged_mutant(mutant, self.undamaged, record, rules, looks=len(looks), last=look == looks[-1])
                if outcome is not None:
                    decided[mutant.id] = outcome
            left = [mutant for mutant in left if mutant.id not in decided]
            if not left or self._stopped is not None:
                break
        return decided

    def _ask(self, names: Sequence[str], replicates: int) -> dict[str, Record]:
        """Make the calls of these runs that have no answer yet, and return their records, by name."""
        plan, configuration = self._plan, self._plan.configuration
        runs = {name: self._run(name, replicates) for name in names}
        scorers = {name: Scorer(plan.component, plan.cases, replicates, self._scores) for name in names}
        cases = {case.id: case for case in plan.cases}
        self._session = replace(self._session, budget=self._session.budget.anew(self._cost_of_others(runs, replicates)))

        def request_for(run: Run, call: Call) -> Request:
            return build_request(
                self._asked[run.manifest.run_id],
                cases[call.case_id],
                replicate=call.replicate,
                seed=run.manifest.seed,
                max_output_tokens=run.model.params.max_output_tokens,
            )

        questions = Questions(
            request_for=request_for,
            on_outcome=lambda run, replicate: scorers[run.manifest.run_id].add(replicate),
            check=lambda: check_truths(self._scores, cases),
            meanwhile=load_quantiles,
        )
        asked = self._session.ask(list(runs.values()), questions)
        recorder = Recorder(component=plan.component, settings=configuration.settings, kinds=configuration.kinds)
        records = {}
        for name, run in runs.items():
            why = asked.why_stopped(run)
            self._stopped = self._stopped or why
            records[name] = recorder.record(plan.model, run.manifest, scorers[name].scorecard(replicates), stopped=why)
        return records

    def _run(self, name: str, replicates: int) -> Run:
        """Return the run of one prompt up to a look; its folder says what it would be in all."""
        plan, component = self._plan, self._asked[name]
        manifest = Manifest(
            run_id=name,
            created=f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}",
            skill=component.name,
            skill_version=component.version,
            model_id=plan.model.id,
            provider=plan.model.provider,
            replicates=self._options.replicates,
            seed=plan.configuration.settings.seed + (CONTROLS.index(name) + 1 if name in CONTROLS else 0),
            cases={case.id: case.digest for case in plan.cases},
            digests={
                **input_digests(component, plan.model),
                "mutant": digest(canonical_json([component.prompt, component.schema])),
            },
            evaluator_version=__version__,
            draft=True,
        )
        folder = plan.folder / name
        if not (folder / MANIFEST).exists():
            create_run(folder, manifest)
        asked = None if replicates == self._options.replicates else replicates
        return Run(model=plan.model, manifest=manifest.model_copy(update={"settled_after": asked}), folder=folder)

    def _cost_of_others(self, runs: Container[str], replicates: int) -> float:
        """Return what the answers cost that are not among the calls of these runs up to a look.

        One whose cost nobody told counts as much as it can have cost.
        """
        limit, costs = self._plan.model.params.max_output_tokens, [0.0]
        for name, component in self._asked.items():
            if (self._plan.folder / name).exists():
                sizes = input_sizes(component, self._plan.cases)
                for call, replicate in outcomes(self._plan.folder / name).items():
                    if replicate.completion is not None and (name not in runs or call.replicate >= replicates):
                        cost = dearest_cost(self._plan.model, self._price, replicate.completion)
                        most = most_cost(self._price, sizes[call.case_id].most, limit)
                        costs.append(most or 0.0 if cost is None else cost)
        return sum(costs)

    def spent(self, names: Sequence[str]) -> tuple[int, float | None]:
        """Return how many calls of these runs are answered, by now and before, and what they cost."""
        made = [
            replicate
            for name in names
            if (self._plan.folder / name).exists()
            for replicate in outcomes(self._plan.folder / name).values()
        ]
        costs = [call_cost(self._plan.model, self._price, replicate) for replicate in made]
        return sum(replicate.answered for replicate in made), total_or_none(costs)
