"""`evaluate --judge ID`: a judge's scores for the text fields that name a rubric, once a run's answers are scored.

They go into the record as a part of their own. The judge's calls lie in the run's folder, and count against its budget.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skill_evaluator.commands.judge_asking import Asking, ask_judges
from skill_evaluator.commands.judge_options import BatchAskingOptions
from skill_evaluator.commands.judge_score import score_results
from skill_evaluator.errors import ConfigError, JudgeError, PendingError, RunError
from skill_evaluator.judges.asking.criteria import NamedRubric, Writers, check_families, choose_criteria
from skill_evaluator.judges.asking.items import OutputItem, case_item, items_of_run, value_at
from skill_evaluator.judges.asking.judging import write_papers
from skill_evaluator.judges.asking.questions import load_prompt, question_sizes
from skill_evaluator.judges.modes.scoring import PROMPTS, JudgeScores, score_questions
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Model, select_models
from skill_evaluator.library.rubrics import find_rubrics, load_rubric
from skill_evaluator.providers import BATCHES, Configuration, lack_of
from skill_evaluator.records.judged import JudgedCriterion, JudgedField, JudgedFields
from skill_evaluator.records.record import Record
from skill_evaluator.reports.judge_scores import scores_bias_page
from skill_evaluator.runner.batch import BatchMode
from skill_evaluator.runner.journal import outcomes
from skill_evaluator.runner.limits import Budget
from skill_evaluator.runner.prices import Estimate, InputSize, estimate, pooled_hit_rate, sum_of
from skill_evaluator.runner.runs import Run, settings_digest
from skill_evaluator.stats import rounded, total_or_none
from skill_evaluator.text import canonical_json, digest, nearest

_FOLDER = "judged"  # in a run's folder: a judging a field
_BYTES_A_TOKEN = 4  # of an answer, which may be as long as its model writes
_INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldJudging:
    """Who judges the free text of a component's answers, and by path of a field with which rubric."""

    component: Component
    model: Model
    rubrics: Mapping[str, NamedRubric]
    configuration: Configuration
    config: Path
    concurrency: int | None

    def size(self, runs: Sequence[Run], cases: Sequence[Case]) -> Estimate:
        """Return what the judge would take at most: an answer may be as long as its model writes."""
        return sum_of([self._size_of(run, path, cases) for run in runs for path in self.rubrics])

    def _size_of(self, run: Run, path: str, cases: Sequence[Case]) -> Estimate:
        cases = [case for case in cases if case.id in run.manifest.cases]
        longest = "x" * (_BYTES_A_TOKEN * run.model.params.max_output_tokens)
        truths = [value_at(case.truth, path) or longest if case.labelled else longest for case in cases]
        likely, most = (
            question_sizes(
                asked.question
                for asked in score_questions(
                    self.rubrics[path],
                    [case_item(case, path, output, run.model.id) for case, output in zip(cases, outputs, strict=True)],
                    run.manifest.seed,
                    reference=True,
                )[0]
            )
            for outputs in (truths, [longest] * len(cases))
        )
        sizes = {name: InputSize(likely=size.likely, most=most[name].most) for name, size in likely.items()}
        kind, batch = self.configuration.kinds[self.model.provider], self._is_batched(run)
        return estimate(sizes, self.model, kind, 1, batch=batch)

    def _is_batched(self, run: Run) -> bool:
        """Return whether the judge is asked in batches: as the run's model was, if the judge's provider has them."""
        return run.manifest.transport == "batch" and self.model.provider in BATCHES

    def records(
        self,
        scored: Sequence[tuple[Run, Record]],
        cases: Sequence[Case],
        budget: Budget,
        batch_mode: BatchMode,
        pending: dict[str, str],
    ) -> list[tuple[Run, Record]]:
        """Return the runs and records with what the judge says of those that are complete.

        Where it stopped, that record and those after it are incomplete: to resume them asks the judge the rest. Runs
        whose judgements lie in batches that are not waited for are left in `pending`.
        """
        stops = (record.stopped for _, record in scored)
        stopped = next((why for why in stops if why is not None and why.startswith(_INTERRUPTED)), None)
        records = []
        for run, record in scored:
            judged = None
            if record.complete:
                if stopped is None:
                    try:
                        judged, stopped = self._judge(run, cases, budget, batch_mode)
                    except PendingError as state:
                        pending[run.manifest.run_id] = str(state)
                        continue
                record = record.model_copy(update={"judged": judged, "stopped": stopped, "complete": stopped is None})
            records.append((run, record))
        return records

    def _judge(
        self, run: Run, cases: Sequence[Case], budget: Budget, batch_mode: BatchMode
    ) -> tuple[JudgedFields | None, str | None]:
        """Ask the judge what it has not answered yet; return what it says, or why it did not say enough.

        What people may read of it lies beside its answers, as after `judge score`. Raise PendingError once every field
        is asked about, if answers are in batches that are not waited for.
        """
        waiting: list[str] = []
        fields: dict[str, JudgedField] = {}
        judges: list[JudgeScores] = []
        answers = outcomes(run.folder)
        mine = [case for case in cases if case.id in run.manifest.cases]
        for path, rubric in self.rubrics.items():
            items, left_out = items_of_run(self.component, mine, answers, run.model.id, path)
            try:
                scores, stopped = self._ask(run, rubric, items, left_out, budget, batch_mode) if items else (None, None)
            except PendingError as state:
                waiting.append(str(state))
                continue
            if stopped is not None:
                return None, stopped
            fields[path] = _field(rubric, scores, left_out)
            judges += [] if scores is None else [scores]
        if waiting:
            raise PendingError("; ".join(waiting))
        records = [scores.judge for scores in judges]
        return JudgedFields(
            judge=self.model.id,
            settings=settings_digest(self.model),
            served_models=sorted({name for record in records for name in record.served_models}),
            planned=sum(record.planned for record in records),
            answered=sum(record.answered for record in records),
            cost_usd=rounded(total_or_none(record.cost_usd for record in records)),
            hit_rate=pooled_hit_rate((record.input_tokens, record.hit_rate) for record in records),
            fields=fields,
        ), None

    def _ask(
        self,
        run: Run,
        rubric: NamedRubric,
        items: Mapping[str, OutputItem],
        left_out: Mapping[str, str],
        budget: Budget,
        batch_mode: BatchMode,
    ) -> tuple[JudgeScores | None, str | None]:
        questions, prompts = score_questions(rubric, list(items.values()), run.manifest.seed, reference=True)
        asking = Asking(
            mode="score",
            rubric=rubric.rubric.digest,
            criteria=[criterion.id for criterion in rubric.criteria],
            prompts=prompts,
            items={item.id: item.digest for item in items.values()},
            questions=[asked.question for asked in questions],
        )
        shaping = [rubric.paper, [prompt.identity.digest for prompt in prompts], settings_digest(self.model)]
        shaping.append({asked.question.case_id: asked.question.digest for asked in questions})
        options = BatchAskingOptions(
            judges=(self.model.id,),
            seed=run.manifest.seed,
            concurrency=self.concurrency,
            config=self.config,
            batch=self._is_batched(run),
            submit_only=batch_mode != "wait",
            collecting=self.configuration if batch_mode == "collect" else None,
        )
        folder = run.folder / _FOLDER / digest(canonical_json(shaping)).rpartition(":")[2][:12]  # else asked anew
        asked = ask_judges(asking, self.configuration, [self.model], options, folder, budget)
        results = score_results(asked, rubric, questions, left_out, None, reference=True)
        write_papers(folder, rubric.paper, prompts, asking.systems, results, scores_bias_page(results))
        if asked.complete:
            return results.judges[0], None
        halted = asked.runs[0].stopped
        why = "it answered too little" if halted is None else f"{halted.reason}: {halted.message}"
        return None, f"the judge {self.model.id}: {why}"


def _field(rubric: NamedRubric, scores: JudgeScores | None, left_out: Mapping[str, str]) -> JudgedField:
    return JudgedField(
        rubric=Path(rubric.file).stem,
        rubric_digest=rubric.rubric.digest,
        prompt=load_prompt(PROMPTS["reference_based"]).identity.digest,
        mean=None if scores is None else scores.summary.value,
        ci95=None if scores is None else scores.summary.ci95,
        n=0 if scores is None else scores.summary.n,
        criteria={
            one.criterion: JudgedCriterion(
                mean=one.score.value,
                ci95=one.score.ci95,
                n=one.score.n,
                highest=one.highest,
                unscored={str(reason): count for reason, count in one.unscored.items()},
            )
            for one in (() if scores is None else scores.criteria)
        },
        left_out=dict(Counter(left_out.values())),
    )


def field_judging(
    judge: str,
    component: Component,
    configuration: Configuration,
    config: Path,
    models: Sequence[Model],
    concurrency: int | None,
    *,
    dry_run: bool,
) -> FieldJudging:
    """Return who judges what; raise ConfigError, JudgeError or RunError, before any call, for what cannot be."""
    (model,) = select_models(configuration.models, (judge,))
    kind = configuration.kinds[model.provider]
    lack = lack_of(model, kind, configuration.keys)
    if lack is not None and not dry_run:
        raise ConfigError(f"the judge {model.id} cannot be asked: {lack}")
    where = component.folder / "evals" / "datasets.json"
    named = {path: rule.rubric for path, rule in component.plan.leaves.items() if rule.rubric is not None}
    if not named:
        raise RunError(f'--judge has nothing to judge: no field with compare: text has a "rubric" in {where}')
    files = {file.stem: file for file in find_rubrics(config)}
    rubrics = {}
    for path, name in named.items():
        if name not in files:
            raise ConfigError(
                f"no rubric '{name}' in {config / 'rubrics'} at fields.{path} of {where} {nearest(name, files)}"
            )
        rubric = choose_criteria(
            str(files[name]),
            load_rubric(files[name], follow_links=configuration.settings.limits.follow_links),
            (),
            ("direct_scoring", "reference_based"),
        )
        if rubric.field_of(component.name) not in ("", path):
            raise JudgeError(f"{rubric.file} is for the field '{rubric.field_of(component.name)}', not for '{path}'")
        same_family = configuration.settings.policy.judge.panel.same_family
        check_families(rubric, [model], [one.id for one in models], Writers(models=configuration.models), same_family)
        rubrics[path] = rubric
    return FieldJudging(
        component=component,
        model=model,
        rubrics=rubrics,
        configuration=configuration,
        config=config,
        concurrency=concurrency,
    )
