"""`Library`: a prompt library on disk, with one method per task. The commands use it, too.

Stable: its names, arguments and result fields change only with a major version. Judges, audits and the
site are imported when they are used, because most commands use none.
"""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from skill_evaluator.api.auditing import Audits
from skill_evaluator.api.judging import Judges
from skill_evaluator.ci.linting import DoctorReport, LintedLibrary, LintRequest, examine, lint
from skill_evaluator.ci.platforms import PLATFORMS, fetched_fixtures, refuse_fetched
from skill_evaluator.errors import LeaderboardError, SkillEvaluatorError, refuse
from skill_evaluator.evaluation import many
from skill_evaluator.evaluation.many import DryRun, Switch
from skill_evaluator.evaluation.mutation import MutationRequest, MutationResult, mutate
from skill_evaluator.evaluation.outputs import explain, score_again
from skill_evaluator.evaluation.pipeline import EvaluationResult, evaluate
from skill_evaluator.evaluation.runs import EvaluationRequest, Finished
from skill_evaluator.exchange.exported import Exported, ExportRequest, export_records
from skill_evaluator.exchange.imported import ImportRequest, import_results, records_in
from skill_evaluator.library.case_table import CaseTable, ImportedCases, accept_cases, import_cases, unreviewed_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Model, Settings, load_models, load_settings
from skill_evaluator.library.options import COMPONENTS, CONFIG, FOLDERS, PlatformName, parse, request_of
from skill_evaluator.library.sources import components_of
from skill_evaluator.library.tables import ProblemHandler
from skill_evaluator.processes import map_in_processes
from skill_evaluator.providers import read_configuration
from skill_evaluator.providers.access import error_of, result_or_error
from skill_evaluator.records.archive import Acceptance, Archive
from skill_evaluator.records.record import Record
from skill_evaluator.records.selection import Accepted, accept
from skill_evaluator.reports.evaluation import write_report, write_reports
from skill_evaluator.runner.journal import Manifest
from skill_evaluator.runner.session import Watch, no_progress
from skill_evaluator.scoring.answer_views import CaseView
from skill_evaluator.site import SiteFolder
from skill_evaluator.verdicts.component import RecordedComponent, on_different_days, pairs_of_files
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.results import ComparisonResult
from skill_evaluator.verdicts.decide.rules import exit_code_of, rules_for
from skill_evaluator.verdicts.shipping import History, ModelRanking

# Options that take components: a folder may replace a name, because shells complete folders.
_COMPONENT_FIELDS = ("skill", "skills", "names", "sources")


class Library:
    """A prompt library on disk; settings, components and records are read when they are used.

    >>> library = Library("components", config=".evaluator")
    >>> library.compare("receipts").verdict  # doctest: +SKIP
    'regressed'

    Every method raises a SkillEvaluatorError for an invalid input, before any call. Warnings are printed on stderr.
    Only `evaluate`, `try_`, `mutate`, `switch`, `doctor`, `audits.run` and methods of `judge` call models.
    """

    def __init__(
        self, components: str | Path = COMPONENTS, *, config: str | Path = CONFIG, fixtures: str | Path | None = None
    ) -> None:
        """Set the folders of the components, of the configuration and of the cases (default: ./fixtures)."""
        self.config = Path(config)
        self.components = components_of(Path(components), self.config, COMPONENTS)
        self.fixtures = None if fixtures is None else Path(fixtures)

    @cached_property
    def settings(self) -> Settings:
        """The contents of settings.yaml."""
        return load_settings(self.config)

    @cached_property
    def models(self) -> tuple[Model, ...]:
        """The models of models.yaml. Raise ConfigError if the file is missing or invalid."""
        return load_models(self.config)

    @cached_property
    def judge(self) -> Judges:
        """The methods of LLM judges: score and compare outputs, and measure their agreement with people."""
        return Judges(self.components, self.config, self.fixtures)

    @cached_property
    def audits(self) -> Audits:
        """The methods of audits: ability, fluctuation and grades of models over benchmarks and scenarios."""
        return Audits(self.components, self.config, self.fixtures)

    def component(self, skill: str) -> Component:
        """Read a component: its prompt, its output schema, and the comparison rules of its fields."""
        return load_component(self.components, skill, self.settings.limits, self.fixtures)

    def recorded(self, skill: str) -> RecordedComponent:
        """Return a component with its recorded runs, and the settings by which they are compared."""
        component = self.component(skill)
        return RecordedComponent(component=component, archive=Archive(component), settings=self.settings)

    def evaluate(
        self,
        skill: str,
        *,
        concurrency: int | None = None,
        max_cost: float | None = None,
        max_calls: int | None = None,
        replicates: int | None = None,
        models: Sequence[str] = (),
        cases: Sequence[str] = (),
        seed: int | None = None,
        resume: bool = False,
        run: str | None = None,
        no_reuse: bool = False,
        shard: str | None = None,
        scenario: str | None = None,
        no_prompt: bool = False,
        recorded_baseline: bool = False,
        failing: bool = False,
        with_baseline: bool = False,
        invocation: str | None = None,
        rerun_baseline: bool = False,
        draft: bool = False,
        batch: bool = False,
        results: str | Path | None = None,
        leaderboard: bool = True,
        watch: Watch | None = None,
    ) -> EvaluationResult:
        """Run a component on its cases and models, score the outputs, record the result and compare it.

        Args:
            skill: The component, by name or folder.
            concurrency: Concurrent calls per model; default 8, or up to 256 on a private network.
            max_cost: Maximum cost of all models together, in USD.
            max_calls: Maximum calls over all models, without retries.
            replicates: Calls per case and model; default 10 (settings.yaml).
            models: Only these models of models.yaml.
            cases: Only cases with these ids or patterns.
            seed: Seed from which each replicate's seed is drawn; default: `seed` of settings.yaml, or the next
                unused one if a version is called again.
            resume: Continue the newest unfinished run; make only the missing calls.
            run: Continue this run: its id or folder.
            no_reuse: Begin a new run, even if an unfinished run could be continued.
            shard: Only the I-th of N parts of the cases, as `I/N`.
            scenario: Wrap the prompt in the system-prompt template .evaluator/scenarios/NAME.md.
            no_prompt: Run without the prompt, with the schema only, to see what the prompt adds.
            recorded_baseline: Compare with the baseline's record instead of running it again.
            failing: Run the failed cases of the newest record again, interleaved with the baseline.
            with_baseline: Interleave the baseline with the new version, whatever the policy says; skip models without
                a baseline.
            invocation: The common prefix of the run ids; default: the time and random digits. If it is set, unfinished
                runs continue only with `resume` or `run`, and baselines run only with `with_baseline` or `failing`.
            rerun_baseline: Run the highest recorded version again to measure noise.
            draft: Make a draft: it is in no leaderboard and never a baseline.
            batch: Use batch APIs: half the price, outputs within a day; waits for them.
            results: The folder for run folders; default: in the component.
            leaderboard: Append the record to the component's leaderboard.json.
            watch: Receives the progress of the calls; default: no output.

        Returns:
            The finished runs with interleaved baselines, the verdict on the new version and the ranking of its models.
        """
        planned = None if invocation is None else {"invocation": invocation}
        request = request_of(EvaluationRequest, locals())
        return evaluate_and_report(request, watch or no_progress)

    def try_(
        self,
        skill: str,
        *,
        cases: Sequence[str] = (),
        replicates: int = 3,
        models: Sequence[str] = (),
        results: str | Path | None = None,
        concurrency: int | None = None,
        max_cost: float | None = None,
        max_calls: int | None = None,
        watch: Watch | None = None,
    ) -> EvaluationResult:
        """Evaluate the prompt on disk without recording it, as `try` does.

        Args:
            skill: The component, by name or folder.
            cases: Only cases with these ids or patterns.
            replicates: Calls per case and model.
            models: Only these models of models.yaml.
            results: The folder for run folders; default: in the component.
            concurrency: Concurrent calls per model; default 8, or up to 256 on a private network.
            max_cost: Maximum cost of all models together, in USD.
            max_calls: Maximum calls over all models, without retries.
            watch: Receives the progress of the calls; default: no output.

        Returns:
            The runs and their verdict; `changed_outputs()` has the outputs that changed since the baseline.
        """
        request = request_of(EvaluationRequest, {**locals(), "draft": True, "leaderboard": False})
        return evaluate_and_report(request, watch or no_progress)

    def dry_run(
        self,
        skill: str,
        *,
        replicates: int | None = None,
        models: Sequence[str] = (),
        cases: Sequence[str] = (),
        scenario: str | None = None,
        no_prompt: bool = False,
        recorded_baseline: bool = False,
        batch: bool = False,
    ) -> DryRun:
        """Check everything that an evaluation requires and estimate its calls and cost; makes no call.

        Args:
            skill: The component, by name or folder.
            replicates: Calls per case and model; default 10 (settings.yaml).
            models: Only these models of models.yaml.
            cases: Only cases with these ids or patterns.
            scenario: Wrap the prompt in the system-prompt template .evaluator/scenarios/NAME.md.
            no_prompt: Run without the prompt, with the schema only, to see what the prompt adds.
            recorded_baseline: Compare with the baseline's record instead of running it again.
            batch: Use batch APIs: half the price, outputs within a day; waits for them.

        Returns:
            The estimates of each model, and warnings.
        """
        return many.dry_run(request_of(EvaluationRequest, locals()))

    def compare(
        self,
        skill: str | None = None,
        *,
        baseline: str | None = None,
        candidate: str | None = None,
        models: Sequence[str] = (),
        between: tuple[str, str] | None = None,
        different_days: bool = False,
    ) -> ComparisonResult:
        """Compare a version with its baseline, as `compare` does.

        `baseline` and `candidate` are versions, run ids, or files of records or of other tools' results; two files need
        no component. By default, the candidate is the highest version. `between` compares two models on one version.
        `different_days` allows for noise between days: set it if the files were measured on different days.
        """
        baseline, candidate = (None if each is None else str(each) for each in (baseline, candidate))
        before, after, recorded = _records_named(baseline), _records_named(candidate), None
        hidden, left_out = list[Pair](), dict[str, str]()
        if before and after:
            pairs, left_out = pairs_of_files(before, after, models, (str(baseline), str(candidate)))
        else:
            lower, judged = _single_record(before, baseline), _single_record(after, candidate)
            if skill is None:
                names = [name for name, records in ((baseline, before), (candidate, after)) if name and not records]
                detail = f" (there is no file '{names[0]}')" if names else ""
                raise LeaderboardError(f"name a component, or two files: skill-evaluator compare OLD NEW{detail}")
            recorded = self.recorded(skill)
            if between is None:
                pairs, hidden, left_out = recorded.choose_runs(lower, judged, models)
            elif between[0] == between[1]:
                raise LeaderboardError(f"--models names '{between[0]}' twice; name two models")
            elif baseline is not None:
                raise LeaderboardError("--models compares two models on one version (--candidate); remove --baseline")
            else:
                pairs = [recorded.pair_of_models(between, candidate)]
        pairs = on_different_days(pairs) if different_days else pairs
        if recorded is None:
            return compare_records(pairs, rules_for(self.settings, pairs[0].candidate), left_out)
        result = recorded.compare(pairs, hidden, left_out)
        shown = [model.candidate.skill_version for model in result.models]
        unmeasured = recorded.unmeasured(shown) if candidate is None else ""
        return result.model_copy(update={"unmeasured": unmeasured, "ship": recorded.ship_words()})

    def exit_code(self, results: Sequence[ComparisonResult], fail_on: Sequence[str] = ()) -> int:
        """Return the exit code of the worst verdict: 0, 3 or 4.

        It is 0 if the verdict is not in `fail_on` (default: policy.fail_on), else 3 for `regressed` and 4 for others.
        It is 4 instead of 0 if different models answered the two versions, unless policy.served is `any`.
        """
        return exit_code_of(results, self.settings.policy, fail_on)

    def history(self, skill: str, models: Sequence[str] = ()) -> History:
        """Compare each version of each model with its interleaved baseline, or else with the next lower version."""
        recorded = self.recorded(skill)
        return recorded.with_advice(recorded.runs(models))[0]

    def leaderboard(
        self,
        skills: Sequence[str] = (),
        *,
        models: Sequence[str] = (),
        version: str | None = None,
        on_problem: ProblemHandler = refuse,
    ) -> list[ModelRanking]:
        """Rank the models of each component, by default of all that have a recorded run, as `leaderboard` does.

        If `on_problem` is given, it receives the error of a component that cannot be ranked; otherwise it is raised.
        """
        skills = [skills] if isinstance(skills, str) else skills
        names = skills or sorted(path.parent.name for path in self.components.glob("*/leaderboard.json"))
        if not names:
            advice = "evaluate a component, or name another folder with --components DIR"
            raise LeaderboardError(f"no run is recorded in {self.components}; {advice}")

        def ranked(skill: str) -> ModelRanking:
            recorded = self.recorded(skill)
            entries = recorded.runs(models)
            ranked = recorded.ranking(entries, version)
            ranked = recorded.with_advice(entries, ranked)[1] if ranked.models else ranked
            return ranked if version is None else ranked.model_copy(update={"unmeasured": ""})

        results = list(map_in_processes(lambda skill: result_or_error(skill, partial(ranked, skill)), names))
        for problem in results:
            if isinstance(problem, SkillEvaluatorError):
                on_problem(problem)
        return [result for result in results if not isinstance(result, SkillEvaluatorError)]

    def accept(
        self, skill: str, version: str | None = None, *, reason: str, by: str = "", models: Sequence[str] = ()
    ) -> Accepted:
        """Make a recorded version the accepted baseline of later versions, with person and reason, as `accept` does.

        By default, `version` is the highest with a complete record and `by` is git's author.
        """
        recorded, models = self.recorded(skill), [models] if isinstance(models, str) else models
        return accept(recorded.component, recorded.archive, version, reason=reason, by=by, models=models)

    def accepted(self, skill: str) -> list[Acceptance]:
        """Return all acceptances of a component, newest last."""
        return self.recorded(skill).archive.accepted

    def explain(
        self, run: str, *, case: str | None = None, field: str | None = None
    ) -> tuple[Manifest, list[CaseView]]:
        """Return the manifest of a run, and the outputs of its cases beside the ground truths, as `explain` does.

        `case` selects one case, `field` one field. Raise RunError if both are None. `run` is a run folder, or the id of
        a run in a component's evals/results.
        """
        return explain(run, self.components, self.config, self.fixtures, case=case, field=field)

    def score(self, run: str | Path) -> tuple[Finished, Component]:
        """Score a saved run again without a call and rewrite its record.json and report.md, as `score` does.

        `run` is a run folder. Return the run, and the component on disk.
        """
        finished, component = score_again(Path(run), self.components, self.config, self.fixtures)
        write_report(finished, site=self.settings.site.address)
        return finished, component

    def mutate(
        self,
        skill: str,
        *,
        concurrency: int | None = None,
        max_cost: float | None = None,
        max_calls: int | None = None,
        model: str | None = None,
        replicates: int = 4,
        mutants: int = 40,
        dry_run: bool = False,
        results: str | Path | None = None,
        watch: Watch | None = None,
    ) -> MutationResult:
        """Remove each part of a prompt and test whether the cases notice.

        Args:
            skill: The component, by name or folder.
            concurrency: Concurrent calls per model; default 8, or up to 256 on a private network.
            max_cost: Maximum cost of all models together, in USD.
            max_calls: Maximum calls over all models, without retries.
            model: The model to run; name it if models.yaml has several.
            replicates: Outputs per case and mutant.
            mutants: Number of parts of the prompt to remove, longest first.
            dry_run: List the mutants and their maximum cost; make no call.
            results: The folder for run folders; default: in the component.
            watch: Receives the progress of the calls; default: no output.

        Returns:
            The mutants: killed, survived or undecided.
        """
        return mutate(request_of(MutationRequest, locals()), watch or no_progress)

    def switch(
        self,
        old: str,
        new: str,
        skills: Sequence[str] = (),
        *,
        replicates: int | None = None,
        dry_run: bool = False,
        watch: Watch | None = None,
    ) -> Switch:
        """Evaluate components with two models, and compare the new model with the old one.

        Args:
            old: The model to replace. If it is retired or not in models.yaml, its recorded runs are used.
            new: The model of models.yaml to switch to.
            skills: Components, by name or folder; default: all.
            replicates: Calls per case and model; default 10 (settings.yaml).
            dry_run: Return the maximum cost; make no call.
            watch: Receives the progress of the calls; default: no output.

        Returns:
            One row per component, with the verdict (None: not compared) and the cost of both models. Components that
            are programs or have no cases are skipped with a warning.
        """
        return switch_models(request_of(many.SwitchRequest, locals()), watch or no_progress)

    def import_cases(self, table: CaseTable, *, on_problem: ProblemHandler = refuse) -> ImportedCases:
        """Make cases from the rows of the file `table.file`. Write them only if `table.yes`. Overwrite no case.

        `on_problem` receives the error of an invalid row; by default it is raised.
        """
        refuse_fetched(self.settings.fixtures, table.fixtures)
        return import_cases(table, on_problem)

    def review_cases(self, skill: str, *, accept: Sequence[str] = ()) -> list[str]:
        """Return the folders of a component's unreviewed cases.

        With `accept`, mark these cases (ids or patterns) as reviewed instead, and return their ids.
        """
        component = self.component(skill)
        if accept:
            refuse_fetched(self.settings.fixtures, self.fixtures)
            return accept_cases(component, accept)
        return [str(folder) for folder in unreviewed_cases(component)]

    def fetch_cases(self, platform: PlatformName | None = None) -> tuple[str, str, Path] | None:
        """Fetch the cases that settings.yaml names in another repository; return the repository, commit and folder.

        Return None if settings.yaml names no repository. With `platform`, set the commit as an output for later jobs.
        """
        elsewhere = self.settings.fixtures
        if elsewhere is None:
            return None
        folder, commit = fetched_fixtures(elsewhere)
        if platform is not None:
            PLATFORMS[platform].set_outputs({"commit": commit})
        return elsewhere.repository, commit, folder

    def lint(
        self, names: Sequence[str] = (), *, base: str | None = None, no_cases: bool = False, fix: bool = False
    ) -> LintedLibrary:
        """Check components and all their cases.

        Args:
            names: Components, by name or folder; default: all.
            base: A commit. Prompts changed since then must have a higher version, and no record may have changed.
                Components that did not change are skipped, unless they are named.
            no_cases: Check versions and records only: read no case and no schema.
            fix: Resolve conflict markers in each leaderboard.json: keep the rows of both sides.

        Returns:
            The problems of each component; none is raised.
        """
        return lint(request_of(LintRequest, locals()))

    def doctor(self) -> DoctorReport:
        """Call each model once if its key is set. Report problems that prevent runs, and which keys are set.

        Keys in CI are secrets; their names are known only if `gh` is logged in.
        """
        return examine(read_configuration(self.config), self.config)

    def export(
        self,
        sources: Sequence[str] = (),
        *,
        to: Literal["csv", "jsonl", "junit"] = "csv",
        table: Literal["records", "cases", "leaves"] = "records",
        models: Sequence[str] = (),
    ) -> Exported:
        """Export records as a table, or verdicts as JUnit XML.

        Args:
            sources: Components, run folders, run ids, or files of records; default: all components.
            to: The output format.
            table: One row per run, output, or field of a case (csv, jsonl).
            models: Only these models of models.yaml.

        Returns:
            The text, and its number of rows (0 for junit).
        """
        return export_records(request_of(ExportRequest, locals()), self.recorded)

    def import_results(
        self,
        file: str | Path,
        *,
        skill: str | None = None,
        version: str | None = None,
        model: str | None = None,
        on_problem: ProblemHandler = refuse,
    ) -> list[tuple[Record, Path, bool]]:
        """Import the results of another tool as records.

        Args:
            file: Results of promptfoo or inspect (.json), or a .csv, .tsv or .jsonl file.
            skill: Component of the records; default: the name in the file.
            version: Version of the prompt; default: the version in the file.
            model: Model of the results, if the file does not name it.
            on_problem: Receives the error of an invalid row; by default it is raised.

        Returns:
            Each record with its file, and whether it is new.
        """
        return import_results(request_of(ImportRequest, locals()), self.settings, on_problem)

    def site(
        self,
        out: str | Path = "site",
        *,
        recorded: Sequence[str] = (),
        audits: str | Path = "audits",
        judgements: str | Path = "judgements",
        outputs: bool = False,
    ) -> SiteFolder:
        """Write the HTML pages of all records.

        Args:
            out: An empty folder, or a folder with an earlier build.
            recorded: Branches with records, in addition to the work tree.
            audits: The folder of audits.
            judgements: The folder of judge runs.
            outputs: Include the documents, ground truths and outputs of every component.

        Returns:
            The folder. Its `problems` has the error of each unreadable part by name, such as "audit X".
        """
        from skill_evaluator.site.build import SiteBuild, build_site

        return build_site(request_of(SiteBuild, locals()))


def evaluate_and_report(request: EvaluationRequest, watch: Watch) -> EvaluationResult:
    """Evaluate a component, write the report of each run into its folder, and return the result."""
    return write_reports(evaluate(request, watch))


def evaluate_planned(
    request: many.ManyRequest, planned: many.ManyPlanned, watch: Watch
) -> dict[str, EvaluationResult | SkillEvaluatorError]:
    """Evaluate the planned components, which share the limits of calls and cost. Return the result or error by name."""
    done: dict[str, EvaluationResult | SkillEvaluatorError] = {}
    for name in (plan.component.name for plan in planned.ready):
        work = partial(evaluate_and_report, replace(request, skill=name), watch)
        done[name] = result = result_or_error(name, work)
        if isinstance(result, EvaluationResult):
            request = result.remaining(request)
    return done


def switch_models(request: many.SwitchRequest, watch: Watch) -> Switch:
    """Evaluate components with two models, write the report of each run, and return the comparisons."""
    rows, policy = [], load_settings(request.config).policy  # read before the calls, which no later error may lose
    for row, evaluated in many.switched_components(request, watch):
        rows.append(row)
        for problem in () if evaluated is None else write_reports(evaluated).problems:
            print(f"warning: {row.component}: {problem}", file=sys.stderr)
    return Switch(request=request, policy=policy, rows=rows)


def run_command(name: str, command: Callable[[Any], int], arguments: Sequence[str]) -> int:
    """Run the command `name` and return its exit code. Raise SkillEvaluatorError, also for a ValidationError."""
    try:
        return command(_with_library(parse(name, command, arguments)))
    except ValidationError as problem:
        raise error_of(problem) from None


def _with_library(options: Any) -> Any:
    """Return a command's options with component names instead of folders.

    The folders of components and cases are those that settings.yaml names, if it names any.
    """
    if not hasattr(options, "components"):
        return options
    library, changes = library_of(options), dict[str, Any]()
    for name in _COMPONENT_FIELDS:
        if value := getattr(options, name, None):
            changes[name] = _names_of(value, options.components)
    reads_cases = getattr(options, "fixtures", ()) is None and not getattr(options, "no_cases", False)
    if reads_cases and (fetched := library.fetch_cases()):
        changes["fixtures"] = fetched[-1]
    return replace(options, components=library.components, **changes)


def _names_of(typed: Any, components: Path) -> Any:
    """Replace each path of a component's folder by the component's name; return other values unchanged."""
    if isinstance(typed, tuple):
        return tuple(_names_of(each, components) for each in typed)
    path = Path(typed)
    is_folder = os.path.isdir(typed)  # noqa: PTH112 - Path.is_dir raises for some names
    return path.name if is_folder and path.parent.resolve() == components.resolve() else typed


def library_of(options: Any) -> Library:
    """Return the library in the folders of a command's options."""
    return Library(**{name: getattr(options, name) for name in FOLDERS if hasattr(options, name)})


def _records_named(named: str | None) -> list[Record]:
    if named is None or not (named.endswith((".json", ".jsonl", ".csv", ".tsv", ".eval")) or Path(named).is_file()):
        return []
    return records_in(Path(named))


def _single_record(records: Sequence[Record], name: str | None) -> str | Record | None:
    if len(records) > 1:
        problem = f"{name} has results of {len(records)} models, but only one can be compared with a recorded run"
        raise LeaderboardError(f"{problem}; compare two files instead: skill-evaluator compare OLD NEW")
    return records[0] if records else name
