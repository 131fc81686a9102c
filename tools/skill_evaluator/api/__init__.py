"""`Library`: a prompt library on disk, with a method for each thing a user does. The commands use it, too.

Stable: its names, arguments and result fields change only with a major version.
Only what draws charts is imported late: altair takes 0.7 s.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from skill_evaluator.api.judging import Judges
from skill_evaluator.api.schemas import edited_schemas
from skill_evaluator.audit.findings.auditing import ReportedAudit, report_audit
from skill_evaluator.audit.findings.family import FamilyCheck, check_scenarios
from skill_evaluator.audit.request import AuditReportRequest, AuditRunRequest, ScenariosCheckRequest
from skill_evaluator.audit.run.calls import AuditResults, run_audit
from skill_evaluator.audit.run.drawing import AuditSize, size_audit
from skill_evaluator.ci.adopting import Proposal, adopt, propose
from skill_evaluator.ci.collecting import CollectRequest, collect
from skill_evaluator.ci.doctor import DoctorReport, examine
from skill_evaluator.ci.fixtures import fetched_fixtures
from skill_evaluator.ci.layout import Choose, InitRequest, LaidOut, lay_out
from skill_evaluator.ci.linting import LintedLibrary, LintRequest, lint
from skill_evaluator.ci.outcome import Outcome, read_outcome
from skill_evaluator.ci.plan import Plan, planned_request, read_plan, sha256_of
from skill_evaluator.ci.planning import PlanRequest, make_plan
from skill_evaluator.ci.platforms import PLATFORMS
from skill_evaluator.ci.publishing import Published, PublishRequest, publish
from skill_evaluator.display.addresses import Site
from skill_evaluator.display.options import COMPONENTS, CONFIG, PlatformName, request_of
from skill_evaluator.errors import ConfigError, FixtureError, LeaderboardError, SkillEvaluatorError, refuse
from skill_evaluator.evaluation.dry_run import DryRun, dry_run
from skill_evaluator.evaluation.many import ManyPlanned, evaluate_many, plan_many
from skill_evaluator.evaluation.mutating import mutate
from skill_evaluator.evaluation.mutation_results import MutationResult
from skill_evaluator.evaluation.request import EvaluationRequest, ManyRequest, MutationRequest, SwitchRequest
from skill_evaluator.evaluation.saved import explain, score_again
from skill_evaluator.evaluation.story import Evaluation, evaluate
from skill_evaluator.evaluation.switching import Switch, switch
from skill_evaluator.exchange.exported import Exported, ExportRequest, export_records
from skill_evaluator.exchange.imported import (
    ImportRequest,
    import_results,
    records_in,  # brings with it what scores answers
)
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.library.case_table import CaseTable, ImportedCases, import_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Model, Settings, load_models, load_settings
from skill_evaluator.library.sources import components_of
from skill_evaluator.library.tables import Odd
from skill_evaluator.providers import read_configuration
from skill_evaluator.providers.redaction import attempted
from skill_evaluator.providers.weights import cache_dir
from skill_evaluator.records.archive import Acceptance, Archive
from skill_evaluator.records.record import Record
from skill_evaluator.records.selection import Accepted, accept, newest_of_versions, runs_of_models
from skill_evaluator.reports.evaluation import write_report
from skill_evaluator.runner.engine import Stop
from skill_evaluator.runner.journal import Manifest
from skill_evaluator.runner.session import Watch
from skill_evaluator.scoring.answer_views import CaseView
from skill_evaluator.scoring.parallel import side_by_side
from skill_evaluator.scoring.recording import Finished
from skill_evaluator.site.writing import SiteFolder
from skill_evaluator.verdicts.decide.results import ComparisonResult
from skill_evaluator.verdicts.decide.rules import exit_code_of
from skill_evaluator.verdicts.history.component import RecordedComponent, chosen_of_files
from skill_evaluator.verdicts.history.series import History
from skill_evaluator.verdicts.planning import ranking  # noqa: F401 (once, and not in every process)
from skill_evaluator.verdicts.planning.advice import ModelRanking
from skill_evaluator.verdicts.planning.sizing import SizingPlan, sizing_of

if TYPE_CHECKING:
    from skill_evaluator.site.build import SiteBuild
    from skill_evaluator.site.server import ServedSite, SiteServer

RequestT = TypeVar("RequestT")


class Library:
    """A prompt library on disk: settings, components and what is recorded, read when they are asked for.

    >>> library = Library("components", config=".evaluator")
    >>> library.compare("receipts").verdict  # doctest: +SKIP
    'regressed'

    Every method raises a SkillEvaluatorError that says what is wrong, where, and what to do. A warning is a line on
    stderr, as of the commands. Models are asked only by `evaluate`, `try_`, `mutate`, `switch`, `audit`, `probe` and
    methods of `judge`.
    """

    def __init__(
        self, components: str | Path = COMPONENTS, *, config: str | Path = CONFIG, fixtures: str | Path | None = None
    ) -> None:
        """Take the folders of the components, of models.yaml and settings.yaml, and of the cases."""

        self.config = Path(config)
        self.components = components_of(Path(components), self.config, COMPONENTS)
        self.fixtures = None if fixtures is None else Path(fixtures)

    @classmethod
    def at(cls, options: object) -> Self:
        """Return the library in the folders that the options of a command name."""
        return cls(
            getattr(options, "components", COMPONENTS),
            config=getattr(options, "config", CONFIG),
            fixtures=getattr(options, "fixtures", None),
        )

    def _of(self, kind: type[RequestT], skill: str | RequestT, options: dict[str, Any]) -> RequestT:
        """Return a request of a component by its name and options; a request itself is returned unchanged."""
        return skill if isinstance(skill, kind) else request_of(kind, self, skill=skill, **options)

    @cached_property
    def settings(self) -> "Settings":
        """What settings.yaml says."""

        return load_settings(self.config)

    @cached_property
    def models(self) -> tuple["Model", ...]:
        """The models of models.yaml; raise ConfigError if the file is missing or wrong."""

        return load_models(self.config)

    @cached_property
    def judge(self) -> "Judges":
        """What judges are asked, and what they are worth."""

        return Judges(self.components, self.config, self.fixtures)

    def component(self, skill: str) -> "Component":
        """Read a component: its prompt, its contract, and how its fields are compared."""

        return load_component(self.components, skill, self.settings.limits, self.fixtures)

    def recorded(self, skill: str) -> "RecordedComponent":
        """Return a component with its recorded runs, and the rules by which they are judged."""

        component = self.component(skill)
        return RecordedComponent(component=component, archive=Archive(component), settings=self.settings)

    def evaluate(
        self,
        skill: "str | EvaluationRequest",
        *,
        watch: "Watch | None" = None,
        show_changes: bool = False,
        **options: Any,
    ) -> "Evaluation":
        """Ask, score, record and compare a component; `options` are those of the command, such as `replicates=5`.

        `watch` shows how the calls go; without it nothing is shown. `show_changes` also tells which answers changed.
        """

        request = self._of(EvaluationRequest, skill, options)
        if request.dry_run:
            raise ConfigError("this asks models, and makes no dry run; use Library.dry_run")
        done = evaluate(
            request,
            watch=watch or _unseen,
            on_kept=write_report,
            show_changes=show_changes,
        )
        if done.verdict is not None:
            for run in done.finished:
                write_report(run, done.verdict, Site(self.settings.site.address))
        return done

    def try_(self, skill: str, *, watch: "Watch | None" = None, **options: Any) -> "Evaluation":
        """Ask with the prompt as it is on disk, and judge it against the record of the same cases; record nothing."""
        return self.evaluate(skill, watch=watch, show_changes=True, draft=True, leaderboard=False, **options)

    def dry_run(self, skill: "str | EvaluationRequest", **options: Any) -> "DryRun":
        """Check everything that an evaluation needs, without a call, and return what it would take."""

        return dry_run(self._of(EvaluationRequest, skill, options))

    def compare(
        self,
        skill: str | None = None,
        *,
        baseline: str | None = None,
        candidate: str | None = None,
        models: Sequence[str] = (),
        between: tuple[str, str] | None = None,
        apart: bool = False,
    ) -> "ComparisonResult":
        """Say whether a version is worse than the recorded one, as `compare` does.

        `baseline` and `candidate` are versions, run ids, or files of records or of other tools' results; two files
        need no component. `between` compares two models on the same version. `apart`: the results of the other tool
        were measured on different days.
        """

        baseline, candidate = (None if each is None else str(each) for each in (baseline, candidate))
        before, after, recorded = _records_named(baseline), _records_named(candidate), None
        if before and after:
            chosen = chosen_of_files(before, after, models, (str(baseline), str(candidate)))
        else:
            lower, judged = _only(before, baseline), _only(after, candidate)
            if skill is None:
                raise LeaderboardError("name a component, or two record files with --baseline and --candidate")
            recorded = self.recorded(skill)
            if between is None:
                chosen = recorded.chosen(lower, judged, models)
            elif baseline is not None or between[0] == between[1]:
                raise LeaderboardError(
                    "--models compares two different models on one version, named by --candidate; leave --baseline out"
                )
            else:
                chosen = recorded.chosen_models(between, candidate)
        result = (chosen.apart() if apart else chosen).judged(self.settings)
        shown = [model.candidate.skill_version for model in result.models]
        unmeasured = recorded.unmeasured(shown) if recorded and candidate is None else ""
        return result.model_copy(update={"unmeasured": unmeasured})

    def exit_code(self, results: "Sequence[ComparisonResult]", fail_on: Sequence[str] = ()) -> int:
        """Return the exit code of verdicts: 0, 3 or 4, by `fail_on` or else by the policy of settings.yaml."""

        return exit_code_of(results, self.settings.policy, fail_on)

    def plan_many(self, request: "ManyRequest") -> "ManyPlanned":
        """Return which components are ready to be evaluated, and what they cost, as `evaluate` without a name does."""

        return plan_many(request)

    def evaluate_many(
        self, request: "ManyRequest", planned: "ManyPlanned", *, watch: "Watch | None" = None
    ) -> "dict[str, Evaluation | SkillEvaluatorError]":
        """Evaluate each component that was planned; return by name what came of it, or why nothing did."""

        return evaluate_many(request, planned, lambda each: self.evaluate(each, watch=watch))

    def history(self, skill: str, models: Sequence[str] = ()) -> "History":
        """Judge every recorded version of every model against the one before, as `history` does."""
        recorded = self.recorded(skill)
        return recorded.advised(recorded.runs(models))[0]

    def leaderboard(
        self,
        skills: Sequence[str] = (),
        *,
        models: Sequence[str] = (),
        version: str | None = None,
        odd: "Odd" = refuse,
    ) -> list["ModelRanking"]:
        """Rank the models of each component, by default of all that have a recorded run, as `leaderboard` does.

        `odd` takes the error of a component that cannot be ranked instead of having it raised.
        """
        skills = [skills] if isinstance(skills, str) else skills
        names = skills or sorted(path.parent.name for path in self.components.glob("*/leaderboard.json"))
        if not names:
            raise LeaderboardError(f"no run is recorded in {self.components}; evaluate one, or see --components DIR")

        def ranked(skill: str) -> "ModelRanking":
            recorded = self.recorded(skill)
            entries = recorded.runs(models)
            ranked = recorded.ranking(entries, version)
            ranked = recorded.advised(entries, ranked)[1] if ranked.models else ranked
            return ranked if version is None else ranked.model_copy(update={"unmeasured": ""})

        results = list(side_by_side(lambda skill: attempted(skill, partial(ranked, skill)), names))
        for problem in results:
            if isinstance(problem, SkillEvaluatorError):
                odd(problem)
        return [result for result in results if not isinstance(result, SkillEvaluatorError)]

    def accept(
        self, skill: str, version: str | None = None, *, why: str, by: str = "", models: Sequence[str] = ()
    ) -> "Accepted":
        """Make a recorded version the anchor of later versions, with who and why, as `accept` does.

        By default it is the highest version with a complete record, and git's author accepts it.
        """

        recorded, models = self.recorded(skill), [models] if isinstance(models, str) else models
        return accept(recorded.component, recorded.archive, version, why=why, by=by, models=models)

    def accepted(self, skill: str) -> "list[Acceptance]":
        """Return all that was accepted of a component, newest last."""
        return self.recorded(skill).archive.accepted

    def explain(
        self, run: str, *, case: str | None = None, field: str | None = None
    ) -> "tuple[Manifest, list[CaseView]]":
        """Return the outputs of a case compared with its ground truth, or one field of all cases, as `explain` does.

        `run` is a run folder, or the id of a run in a component's evals/results. Return the run's manifest, too.
        """

        places = (self.components, self.config, self.fixtures, self.settings)
        return explain(run, *places, case=case, field=field)

    def score(self, run: str | Path) -> "tuple[Finished, Component]":
        """Score a saved run again without a call and rewrite its record.json and report.md, as `score` does.

        Return the run, and the component as it is now.
        """

        finished, component = score_again(Path(run), self.components, self.config, self.fixtures)
        write_report(finished, site=Site(self.settings.site.address))
        return finished, component

    def mutate(
        self, skill: "str | MutationRequest", *, watch: "Watch | None" = None, **options: Any
    ) -> "MutationResult":
        """Remove each part of a prompt; return which removals the cases notice. `options` are those of the command."""

        return mutate(self._of(MutationRequest, skill, options), watch or _unseen)

    def switch(
        self, request: "SwitchRequest | None" = None, *, watch: "Watch | None" = None, **options: Any
    ) -> "Switch":
        """Ask every component of two models and tell which would be worse with the new one, as `switch` does."""

        return switch(request or request_of(SwitchRequest, self, **options), watch or _unseen, write_report)

    @staticmethod
    def init(request: "InitRequest") -> "LaidOut":
        """Lay out configuration, workflows and an example component in a folder, as `init` does; overwrite nothing."""

        return lay_out(request, edited_schemas())

    @staticmethod
    def propose(request: "InitRequest", choose: "Choose") -> "Proposal":
        """Say what of a library can be evaluated, and propose what else it lacks, as `init --adopt` does.

        `choose` returns the part of a component's schema that is its contract, where several may be.
        """

        return propose(request, edited_schemas(), choose)

    @staticmethod
    def adopt(request: "InitRequest", proposal: "Proposal") -> list[str]:
        """Write what was proposed; return what was done."""

        return adopt(request, proposal)

    def import_cases(
        self, table: "CaseTable | None" = None, *, odd: "Odd | None" = None, **options: Any
    ) -> "ImportedCases":
        """Make cases of the rows of a table, as `cases import` does; only `yes=True` writes them.

        `odd` takes the problem of a wrong row instead of having it raised.
        """

        table = table or request_of(CaseTable, self, **options)
        if self.settings.fixtures and table.fixtures and table.fixtures.is_relative_to(cache_dir()):
            where = self.settings.fixtures.repository
            raise FixtureError(f"the cases belong in {where}; name a clone of it with --fixtures DIR")
        return import_cases(table, odd or refuse)

    def fetch_cases(self, platform: "PlatformName | None" = None) -> tuple[str, str, Path] | None:
        """Bring the fixtures that settings.yaml names in another repository: its name, their commit, their folder.

        None where it names none. A `platform` is handed the commit for later jobs.
        """

        elsewhere = self.settings.fixtures
        if elsewhere is None:
            return None
        folder, commit = fetched_fixtures(elsewhere)
        if platform is not None:
            PLATFORMS[platform].set_outputs({"commit": commit})
        return elsewhere.repository, commit, folder

    def lint(self, request: "LintRequest | None" = None, **options: Any) -> "LintedLibrary":
        """Check components and all their cases, as `lint` does; a problem is in the result, not raised."""

        return lint(request or request_of(LintRequest, self, **options))

    def doctor(self) -> "DoctorReport":
        """Call each model once, and report keys and what stands in the way of runs here and in CI."""

        return examine(read_configuration(self.config), self.config)

    def plan(self, request: "PlanRequest | None" = None, **options: Any) -> "Plan":
        """Say what is to be evaluated, in which jobs and at what cost, as `plan` does; `options` are its own."""

        return make_plan(request or request_of(PlanRequest, self, **options))

    @staticmethod
    def write_plan(plan: "Plan", path: Path) -> str:
        """Write a plan as the file that jobs, `collect` and `report` read; return the SHA-256 of the file."""

        replace_text(path, json_text(plan.model_dump(mode="json")))
        return sha256_of(path)

    @staticmethod
    def planned(request: "ManyRequest", plan: Path, run: str) -> "ManyRequest":
        """Return the request that makes a run of a plan, or resumes it if its folder is among the results."""

        read = read_plan(plan)
        return planned_request(request, read, read.run(run))

    def sizing(self, skill: str, drop: float, models: Sequence[str] = ()) -> "SizingPlan":
        """Say how many cases and replicates would show a drop, by the newest version of each model."""

        if not 0 < drop < 1:  # not a number compares false
            raise ConfigError(f"--detect must be a drop between 0 and 1, such as 0.05, not {drop:g}")
        recorded, policy = self.recorded(skill), self.settings.policy
        archive, where = recorded.archive, recorded.component.leaderboard_path
        newest = newest_of_versions(runs_of_models(archive.entries, models, where))
        if not newest:
            raise LeaderboardError(f"{where} holds no complete run to plan by; evaluate '{skill}' first")
        records = [archive.record(versions[-1]) for _, versions in sorted(newest.items())]
        sizings = [sizing_of(record, drop, policy.design, policy.alpha) for record in records]
        return SizingPlan(skill=skill, detect=drop, design=policy.design, alpha=policy.alpha, models=sizings)

    def collect(self, request: "CollectRequest | None" = None, **options: Any) -> "Outcome":
        """Put the answers of a plan's jobs together, as `collect` does: records, and what became of every call."""

        return collect(request or request_of(CollectRequest, self, **options))

    def outcome(self, collected: str | Path, plan: Path | None = None) -> "Outcome":
        """Read what `collect` wrote; where that is missing, every run of the `plan` is."""

        return read_outcome(Path(collected), plan)

    def publish(self, request: "PublishRequest | None" = None, **options: Any) -> "Published":
        """Add collected records to a branch in one commit and push it, as `publish` does."""

        return publish(request or request_of(PublishRequest, self, **options))

    def export(self, request: "ExportRequest | None" = None, **options: Any) -> "Exported":
        """Export records as a table, or verdicts as JUnit XML, as `export` does."""

        if "out" in options:
            raise ConfigError("this writes no file; give save() of the result its path")
        return export_records(request or request_of(ExportRequest, self, **options), self.recorded)

    def import_results(
        self, request: "ImportRequest | None" = None, *, odd: "Odd" = refuse, **options: Any
    ) -> "list[tuple[Record, Path, bool]]":
        """Make records of other tools' results, as `records import` does; each comes with its file, and if it is new.

        `odd` is told what is wrong with a row, and raises it unless the row is to be left out.
        """

        return import_results(request or request_of(ImportRequest, self, **options), self.settings, odd)

    def site(self, request: "SiteBuild | None" = None, **options: Any) -> "SiteFolder":
        """Write the pages of everything that is recorded, as `site build` does; `options` are those of the command.

        The folder's `problems` say by name what could not be read.
        """

        from skill_evaluator.site.build import SiteBuild, build_site

        return build_site(request or request_of(SiteBuild, self, **options))

    def served_site(self, request: "ServedSite | None" = None, **options: Any) -> AbstractContextManager["SiteServer"]:
        """Build a site for one's own eyes and listen, as `site serve` does, while the context lasts."""
        from skill_evaluator.site.server import ServedSite, serving

        return serving(request or request_of(ServedSite, self, **options))

    def audit_size(self, request: "AuditRunRequest | None" = None, **options: Any) -> "AuditSize":
        """Check the inputs of an audit and estimate its size; makes no call. Takes the options of `audit run`."""

        return size_audit(request or request_of(AuditRunRequest, self, **options))

    def audit(
        self,
        request: "AuditRunRequest | None" = None,
        *,
        watch: "Watch | None" = None,
        **options: Any,
    ) -> "AuditResults":
        """Call every model on every question in every scenario, as `audit run` does, with its options.

        `watch` shows how the calls go.
        """

        request = request or request_of(AuditRunRequest, self, **options)
        if request.dry_run:
            raise ConfigError("this asks models, and makes no dry run; use Library.audit_size")
        return run_audit(request, watch=watch or _unseen)

    def audit_report(self, request: "AuditReportRequest | None" = None, **options: Any) -> "ReportedAudit":
        """Compute ability, fluctuation and grades, as `audit report` does; writes nothing."""

        return report_audit(request or request_of(AuditReportRequest, self, **options))

    def check_scenarios(self, request: "ScenariosCheckRequest | None" = None, **options: Any) -> "FamilyCheck":
        """Check whether a family of scenarios is ready for an audit, as `scenarios check` does."""

        return check_scenarios(request or request_of(ScenariosCheckRequest, self, **options))


async def _unseen(_: object, stop: "Stop") -> None:
    await stop.event.wait()


def _records_named(named: str | None) -> "list[Record]":
    """Read the records if a file is named."""
    if named is None or not (named.endswith((".json", ".jsonl", ".csv", ".tsv", ".eval")) or Path(named).is_file()):
        return []

    return records_in(Path(named))


def _only(records: "Sequence[Record]", named: str | None) -> "str | Record | None":
    if len(records) > 1:
        raise LeaderboardError(
            f"{named} holds {len(records)} models; name a file on both sides to compare them model by model"
        )
    return records[0] if records else named
