"""`Library.audits`: measure how much models fluctuate when the prompt around a task varies."""

from collections.abc import Sequence
from pathlib import Path

from skill_evaluator.audit.calls import AuditResults, run_audit
from skill_evaluator.audit.family import FamilyCheck, check_scenarios
from skill_evaluator.audit.manifest import DrawnAudit, draw_audit
from skill_evaluator.audit.request import AuditReportRequest, AuditRunRequest, Missing, ScenariosCheckRequest
from skill_evaluator.audit.results import ReportedAudit, report_audit
from skill_evaluator.library.options import request_of
from skill_evaluator.runner.session import Watch, no_progress


class Audits:
    """Audits of the models of a library: `Library.audits`."""

    def __init__(self, components: Path, config: Path, fixtures: Path | None) -> None:
        """Set the folders of the library."""
        self.components, self.config, self.fixtures = components, config, fixtures

    def run(
        self,
        *,
        benchmarks: Sequence[str] = (),
        scenarios: Sequence[str] = (),
        models: Sequence[str] = (),
        questions: int | None = None,
        replicates: int | None = None,
        seed: int | None = None,
        max_cost: float | None = None,
        max_calls: int | None = None,
        concurrency: int | None = None,
        resume: bool = False,
        run: str | None = None,
        dry_run: bool = False,
        batch: bool = False,
        audits: str | Path = "audits",
        watch: Watch | None = None,
    ) -> AuditResults | DrawnAudit:
        """Run every model on every question in every scenario.

        Args:
            benchmarks: Components to audit on; default: audit.benchmarks, else every multiple-choice component.
            scenarios: Scenarios of .evaluator/scenarios, or a folder there; default: audit.scenarios (settings.yaml),
                else all outside of folders.
            models: Only these models of models.yaml.
            questions: Draw N cases of each benchmark, by the seed; default: audit.questions, else all.
            replicates: Calls per question and scenario; default: audit.replicates, else 2.
            seed: Seed of the drawn cases and of the calls; default: `seed` of settings.yaml, else 0.
            max_cost: Maximum cost of all models together, in USD.
            max_calls: Maximum calls over all models, without retries.
            concurrency: Concurrent calls per model; default 8, or up to 256 on a private network.
            resume: Continue the newest audit; make only the missing calls.
            run: Continue this audit: its id or folder.
            dry_run: Check the inputs and return the calls and the maximum cost; make no call.
            batch: Use batch APIs: half the price, outputs within a day; waits for them.
            audits: The folder of audits.
            watch: Receives the progress of the calls; default: no output.

        Returns:
            The audit with the counts of its calls, or in a dry run the drawn audit with its estimates.
        """
        drawn = draw_audit(request_of(AuditRunRequest, locals()))
        return drawn if dry_run else run_audit(drawn, watch or no_progress)

    def report(
        self,
        folder: str | Path | None = None,
        *,
        cube: str | Path | None = None,
        questions: int | None = None,
        centered: bool = False,
        without: Sequence[str] = (),
        weights: Sequence[str] = (),
        missing: Missing = "refuse",
        grades: int = 4,
        out: str | Path | None = None,
        audits: str | Path = "audits",
    ) -> ReportedAudit:
        """Compute ability, fluctuation and grades of the models of an audit; writes nothing.

        Args:
            folder: An audit's folder; default: the newest in `audits`.
            cube: A CSV of scores instead of an audit: model,template,<benchmark>,… in per cent.
            questions: The number of questions of each benchmark in `cube`.
            centered: Compute the fluctuation σ after subtracting from each score its scenario's mean over the models;
                for scenarios that are not equally hard.
            without: Skip these scenarios.
            weights: Weights of benchmarks, as NAME=W; default: those of the audit, or else 1 each.
            missing: What to exclude if scores are missing: questions, scenarios or models; "refuse" raises AuditError.
            grades: Number of grades: 4, or 8 (only with 20 models or more).
            out: The folder for page and charts, stored in the result; default: the audit's folder, None with `cube`.
            audits: The folder of audits.

        Returns:
            The result, the scores of all scenarios, the models without any output, and the folder `out`.
        """
        return report_audit(request_of(AuditReportRequest, locals()))

    def check_scenarios(
        self, family: str | None = None, *, trial: str | Path | None = None, audits: str | Path = "audits"
    ) -> FamilyCheck:
        """Check whether a family of scenarios is ready for an audit; makes no call.

        Args:
            family: A folder of .evaluator/scenarios; default: the scenarios outside of folders.
            trial: An audit in at least two of these scenarios; default: the newest such audit.
            audits: The folder of audits.

        Returns:
            The findings of each scenario, the scores of the trial, and the verdict on the family.
        """
        return check_scenarios(request_of(ScenariosCheckRequest, locals()))
