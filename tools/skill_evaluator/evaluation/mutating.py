"""The story of `mutate`: read → damage → ask in batches, look by look → decide each mutant.

A batch is all mutants, whose calls take turns with those of the undamaged prompt and its controls. Under a ceiling it
is a few, so that those asked before it is reached are decided. A look decides who is asked further.
"""

import sys
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from skill_evaluator import __version__
from skill_evaluator.errors import RunError
from skill_evaluator.evaluation.mutation import Undamaged, judged_mutant, looks_of_mutants, silent_cases, unasked
from skill_evaluator.evaluation.mutation_results import LEAST_REPLICATES, MutantResult, MutationEstimate, MutationResult
from skill_evaluator.evaluation.request import MutationRequest
from skill_evaluator.evaluation.story import questions_of
from skill_evaluator.files import read_text
from skill_evaluator.identifiers import now
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Model, select_models
from skill_evaluator.library.mutants import Mutant, capped, mutants_of, neutrals
from skill_evaluator.providers import Configuration, key_note, read_configuration
from skill_evaluator.records.record import Record
from skill_evaluator.runner.journal import MANIFEST, Manifest, create_run, outcomes
from skill_evaluator.runner.limits import Budget
from skill_evaluator.runner.prices import (
    call_cost,
    dearest_cost,
    estimate,
    input_sizes,
    most_cost,
    not_applicable,
    price_of,
    refuse_unpriced,
    sum_of,
)
from skill_evaluator.runner.runs import Run, check_writable, input_digests
from skill_evaluator.runner.schedule import refuse_amounts
from skill_evaluator.runner.session import Session, Watch, with_keys
from skill_evaluator.scoring.answers import AnswerScorer
from skill_evaluator.scoring.recording import Recorder
from skill_evaluator.scoring.scorer import Scorer, open_scores
from skill_evaluator.stats import load_quantiles, rounded, total_or_none
from skill_evaluator.text import canonical_json, counted, digest
from skill_evaluator.verdicts.decide.rules import rules_for

_UNDAMAGED = "undamaged"
_CONTROLS = ("control-1", "control-2", "control-3")
_LEAST_CASES = 2  # one case says nothing of how far cases move by chance
_UNDER_CEILING = 8  # mutants asked side by side


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hunt:
    """Everything a mutation run reads, checked, and the mutants of it. `folder` is where its answers are kept."""

    request: MutationRequest
    component: Component
    cases: tuple[Case, ...]
    model: Model
    configuration: Configuration
    mutants: tuple[Mutant, ...]
    left_out: Mapping[str, int]
    folder: Path

    @property
    def asked(self) -> dict[str, Component]:
        """What is asked, by the name of its run folder: the undamaged prompt, its controls, then the mutants."""
        component = self.component
        return {
            _UNDAMAGED: component,
            **{
                name: replace(component, prompt=prompt)
                for name, prompt in zip(_CONTROLS, neutrals(component.prompt), strict=True)
            },
            **{_name_of(one): replace(component, prompt=one.prompt, schema=one.schema) for one in self.mutants},
        }


def _read(request: MutationRequest) -> _Hunt:
    """Read configuration, component and cases, and damage the prompt; raise for any fault, before any call."""
    refuse_amounts(
        {"--replicates": request.replicates, "--concurrency": request.concurrency, "--mutants": request.mutants},
        request.max_calls,
        request.max_cost,
    )
    if request.replicates < LEAST_REPLICATES:
        raise RunError(f"--replicates must be at least {LEAST_REPLICATES}: one answer cannot show chance")
    configuration = read_configuration(request.config)
    component = load_component(request.components, request.skill, configuration.settings.limits, request.fixtures)
    if component.program is not None:
        raise RunError(f"'{component.name}' is a program: mutate damages prompts")
    models = select_models(configuration.models, () if request.model is None else (request.model,))
    if len(models) != 1:
        raise RunError(f"mutate asks one model; name it with --model ({', '.join(one.id for one in models)})")
    (model,) = models
    if request.max_cost is not None:
        refuse_unpriced(models, configuration.kinds)
    cases = load_cases(component, request.fixtures)
    unfit = not_applicable(cases, input_sizes(component, cases), model, configuration.kinds[model.provider])
    cases = tuple(case for case in cases if case.labelled and case.id not in unfit)
    if len(cases) < _LEAST_CASES:
        raise RunError(f"'{component.name}' has {counted(len(cases), 'case')} with ground truth; mutate needs two")
    source = read_text(component.files[0], RunError)
    every = mutants_of(component.prompt, component.schema, source=source)
    left_out = {}
    if model.structured_output != "json_schema":
        seen = [one for one in every if one.operator != "descriptions-removed"]
        left_out = {"schema.json is not sent to this model": len(every) - len(seen)} if len(seen) < len(every) else {}
        every = tuple(seen)
    mutants, over = capped(every, request.mutants)
    if not mutants:
        raise RunError(f"nothing in the prompt of '{component.name}' can be damaged: it has no rule, format or example")
    left_out |= {f"{operator}, over --mutants {request.mutants}": count for operator, count in over.items()}
    shaping = [input_digests(component, model), component.digests["datasets"], request.replicates]
    key = digest(canonical_json([*shaping, {case.id: case.digest for case in cases}, configuration.settings.seed]))
    results = request.results or component.results_dir
    return _Hunt(
        request=request,
        component=component,
        cases=cases,
        model=model,
        configuration=configuration,
        mutants=mutants,
        left_out=left_out,
        folder=results / f"mutants-{key[-12:]}",
    )


def _name_of(mutant: Mutant) -> str:
    """Return the name of a mutant's run folder, which also depends on its text."""
    return f"{mutant.id}-{mutant.digest[-8:]}"


def size_mutants(request: MutationRequest) -> MutationEstimate:
    """Return the mutants, and the most that asking them would take."""
    plan = _read(request)
    kind = plan.configuration.kinds[plan.model.provider]
    sizes = [input_sizes(component, plan.cases) for component in plan.asked.values()]
    whole = sum_of([estimate(size, plan.model, kind, request.replicates) for size in sizes])
    return MutationEstimate(
        skill=plan.component.name,
        model_id=plan.model.id,
        key=key_note(plan.model, kind, plan.configuration.keys),
        n_cases=len(plan.cases),
        replicates=request.replicates,
        mutants=[unasked(one) for one in plan.mutants],
        left_out=dict(plan.left_out),
        most_calls=whole.calls,
        least_calls=len(sizes) * len(plan.cases) * LEAST_REPLICATES,
        cost_upper_usd=whole.cost_upper_usd,
    )


def mutate(request: MutationRequest, watch: Watch) -> MutationResult:
    """Damage the prompt, ask every mutant until it is decided, and return what became of each."""
    plan = _read(request)
    if plan.model.provider == "replay":
        raise RunError(f"'{plan.model.id}' is replayed: its answers ignore the prompt; ask a different model")
    with_keys([plan.model], plan.configuration)
    session = Session(
        configuration=plan.configuration,
        watch=watch,
        budget=Budget(request.max_cost, request.max_calls),
        concurrency=request.concurrency,
    )
    check_writable(plan.folder, "--results DIR")
    most_calls = len(plan.asked) * len(plan.cases) * request.replicates
    with open_scores(plan.component, plan.cases, most_calls) as scores:
        asking = _Asking(plan, scores, session)
        mutants = asking.decide()
    control = [] if asking.undamaged is None else asking.undamaged.moved_by_controls()
    calls, cost = asking.spent()
    return MutationResult(
        skill=plan.component.name,
        skill_version=plan.component.version,
        model_id=plan.model.id,
        n_cases=len(plan.cases),
        replicates=request.replicates,
        alpha=asking.alpha,
        mutants=mutants,
        control=control,
        silent=silent_cases([case.id for case in plan.cases], mutants),
        left_out=dict(plan.left_out),
        calls=calls,
        saved_calls=sum(
            len(plan.cases) * (request.replicates - one.replicates) for one in mutants if one.status == "killed"
        ),
        cost_usd=rounded(cost),
        folder=str(plan.folder),
    )


class _Asking:
    """The calls of a hunt under way: asks some runs up to a look, and makes records of their answers."""

    def __init__(self, plan: _Hunt, scores: AnswerScorer, session: Session) -> None:
        self._plan = plan
        self._request = plan.request
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
        looks = looks_of_mutants(self._request.replicates)
        for look in looks:
            names = [_UNDAMAGED, *_CONTROLS, *map(_name_of, left)]
            records = self._ask(names, look)
            lacking = [records[name] for name in (_UNDAMAGED, *_CONTROLS) if not records[name].complete]
            if lacking:
                self._stopped = self._stopped or lacking[0].stopped or "too many answers of the undamaged prompt failed"
                break
            self.undamaged = Undamaged(record=records[_UNDAMAGED], controls=tuple(records[name] for name in _CONTROLS))
            rules = rules_for(self._plan.configuration.settings, self._request.config, self.undamaged.record)
            self.alpha = rules.alpha
            for mutant in left:
                record = records[_name_of(mutant)]
                if not record.is_final:
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
        self._session = replace(self._session, budget=self._session.budget.anew(self._cost_of_others(runs, replicates)))
        questions = questions_of(self._asked, plan.cases, scorers, self._scores, load_quantiles)
        asked = self._session.ask(list(runs.values()), questions)
        recorder = Recorder(component=plan.component, settings=configuration.settings, kinds=configuration.kinds)
        records = {}
        for name, run in runs.items():
            why = asked.why_stopped(run)
            self._stopped = self._stopped or why
            records[name] = recorder.record(plan.model, run.manifest, scorers[name].scorecard(), stopped=why)
        return records

    def _run(self, name: str, replicates: int) -> Run:
        """Return the run of one prompt up to a look; its folder says what it would be in all."""
        plan, component = self._plan, self._asked[name]
        manifest = Manifest(
            run_id=name,
            created=now(),
            skill=component.name,
            skill_version=component.version,
            model_id=plan.model.id,
            provider=plan.model.provider,
            replicates=self._request.replicates,
            seed=plan.configuration.settings.seed + (_CONTROLS.index(name) + 1 if name in _CONTROLS else 0),
            cases={case.id: case.digest for case in plan.cases},
            digests={
                **input_digests(component, plan.model),
                "mutant": digest(canonical_json([component.prompt.text, component.schema])),
            },
            evaluator_version=__version__,
            draft=True,
        )
        folder = plan.folder / name
        if not (folder / MANIFEST).exists():
            create_run(folder, manifest)
        return Run(model=plan.model, manifest=manifest.model_copy(update={"replicates": replicates}), folder=folder)

    def _cost_of_others(self, runs: Container[str], replicates: int) -> float:
        """Return what the answers cost that are not among the calls of these runs up to a look.

        One whose cost nobody told counts as much as it can have cost.
        """
        model, costs = self._plan.model, [0.0]
        kind = self._plan.configuration.kinds[model.provider]
        for name, component in self._asked.items():
            sizes = input_sizes(component, self._plan.cases)
            for call, replicate in outcomes(self._plan.folder / name).items():
                if replicate.completion is not None and (name not in runs or call.replicate >= replicates):
                    cost = dearest_cost(model, self._price, replicate.completion)
                    size = sizes[call.case_id].of_model(model, kind)
                    most = most_cost(self._price, size.most, model.params.max_output_tokens)
                    costs.append(most or 0.0 if cost is None else cost)
        return sum(costs)

    def spent(self) -> tuple[int, float | None]:
        """Return how many calls are answered, by now and before, and what they cost."""
        made = [replicate for name in self._asked for replicate in outcomes(self._plan.folder / name).values()]
        costs = [call_cost(self._plan.model, self._price, replicate) for replicate in made]
        return sum(replicate.answered for replicate in made), total_or_none(costs)
