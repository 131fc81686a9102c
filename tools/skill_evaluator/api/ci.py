"""`Library.ci`: plan, collect and publish runs. The commands `ci …` use it."""

from pathlib import Path

from skill_evaluator.ci.collecting import CollectRequest, collect
from skill_evaluator.ci.plan import Outcome, Plan
from skill_evaluator.ci.planning import PlanRequest, make_plan
from skill_evaluator.ci.platforms import PLATFORMS, fetched_fixtures
from skill_evaluator.ci.publishing import Published, PublishRequest, publish
from skill_evaluator.display.options import PlatformName
from skill_evaluator.library.config import load_settings


class ContinuousIntegration:
    """Planning, collecting and publishing runs: `Library.ci`. Each method takes the request of its command."""

    def __init__(self, config: Path) -> None:
        """Set the folder of models.yaml and settings.yaml."""
        self.config = config

    @staticmethod
    def plan(request: PlanRequest) -> Plan:
        """Plan the runs of CI, their jobs and their cost."""
        return make_plan(request)

    @staticmethod
    def collect(request: CollectRequest) -> Outcome:
        """Score the outputs of a plan's jobs; write their records and outcome.json, and return the outcome."""
        return collect(request)

    @staticmethod
    def publish(request: PublishRequest) -> Published:
        """Add collected records to a branch in one commit and push it; return ids, branch, commit and problems."""
        return publish(request)

    def fetch_cases(self, platform: PlatformName | None = None) -> tuple[str, str, Path] | None:
        """Fetch the cases that settings.yaml names in another repository; return the repository, commit and folder.

        Return None if settings.yaml names no repository. A `platform` receives the commit as an output for later jobs.
        """
        elsewhere = load_settings(self.config).fixtures
        if elsewhere is None:
            return None
        folder, commit = fetched_fixtures(elsewhere)
        if platform is not None:
            PLATFORMS[platform].set_outputs({"commit": commit})
        return elsewhere.repository, commit, folder
