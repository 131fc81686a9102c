"""The file audit.json: the models, scenarios, benchmarks and cases of an audit, each with its digest."""

from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from skill_evaluator import __version__
from skill_evaluator.errors import AuditError
from skill_evaluator.files import FrozenModel, read_versioned
from skill_evaluator.identifiers import (
    CaseId,
    Commit,
    ComponentName,
    Digest,
    Label,
    ModelId,
    ReplicateCount,
    RunId,
    Timestamp,
    Usd,
    VersionText,
)
from skill_evaluator.runner.journal import Manifest, Transport, run_id_of
from skill_evaluator.text import counted, digest, listed

AUDIT = "audit.json"
RUNS = "runs"  # next to audit.json; one run folder per model
MANIFEST_VERSION = 1
MIN_MODELS, MIN_SCENARIOS, MIN_QUESTIONS = 4, 6, 50  # smaller audits get a warning


class AuditedBenchmark(FrozenModel):
    """A benchmark component and the cases drawn from it: `cases` (digest by id), out of `of` applicable ones.

    `unlabelled` is the number of cases without a ground truth; they are skipped. `not_applicable` has the reasons, by
    case id, why some model does not accept a case; these cases are skipped for every model. `digests` are those of the
    component's files, such as `prompt` and `datasets`.
    """

    name: ComponentName
    version: VersionText
    metric: Label
    weight: PositiveFloat
    of: PositiveInt
    unlabelled: NonNegativeInt = 0
    not_applicable: dict[CaseId, Label] = Field(default={}, exclude_if=lambda reasons: not reasons)
    cases: dict[CaseId, Digest] = Field(min_length=1)
    digests: dict[str, Digest]

    @property
    def left_out(self) -> list[str]:
        """A list with a sentence on the cases that some model does not accept; empty if there are none."""
        names = listed([f"{case_id} ({why})" for case_id, why in self.not_applicable.items()])
        return [f"'{self.name}': skipped for every model, since not applicable to some: {names}"] if names else []

    @property
    def shaping(self) -> dict[str, str]:
        """The digests of the files that determine a call, by name: all `digests` except `datasets`."""
        return {name: value for name, value in sorted(self.digests.items()) if name != "datasets"}

    def cell_digest(self, case: str, template: str) -> str:
        """Return the digest of the inputs of a case in a scenario; `template` is the digest of the scenario."""
        shaping = (f"{name} {value}" for name, value in self.shaping.items())
        return digest("\n".join((self.cases[case], template, *shaping)))


class AuditManifest(FrozenModel):
    """The file audit.json. `models` has the settings digest by model id, `scenarios` the template digest by name.

    `questions` is the number of cases to draw from each benchmark; None means all. `commit` is the components' commit.
    """

    manifest_version: int = MANIFEST_VERSION
    id: RunId
    created: Timestamp
    commit: Commit | None = None
    seed: int
    replicates: ReplicateCount
    questions: PositiveInt | None
    models: dict[ModelId, Digest] = Field(min_length=1)
    scenarios: dict[Label, Digest] = Field(min_length=1)
    benchmarks: list[AuditedBenchmark] = Field(min_length=1)
    transport: Transport = Field(default="direct", exclude_if=lambda transport: transport == "direct")
    max_cost_usd: Usd | None = Field(default=None, exclude_if=lambda cap: cap is None)
    evaluator_version: Label

    @property
    def questions_in_all(self) -> int:
        """The number of questions of all benchmarks together."""
        return sum(len(benchmark.cases) for benchmark in self.benchmarks)

    @property
    def calls_per_model(self) -> int:
        """The number of planned calls per model."""
        return self.questions_in_all * len(self.scenarios) * self.replicates

    def cells(self) -> dict[str, str]:
        """Return the digest of each cell (a case in a scenario) by name `<benchmark>/<scenario>/<case>`.

        The order is that of the calls: benchmarks alternate, and all scenarios of a question come before the next
        question, so that the scenarios of an interrupted audit can be compared.
        """
        rounds = zip_longest(*([(benchmark, case) for case in benchmark.cases] for benchmark in self.benchmarks))
        return {
            f"{benchmark.name}/{scenario}/{case}": benchmark.cell_digest(case, template)
            for questions in rounds
            for benchmark, case in filter(None, questions)
            for scenario, template in self.scenarios.items()
        }

    def run(self, model_id: str, provider: str, settings: str) -> Manifest:
        """Build the manifest of a model's run; `settings` is the digest of the model's settings."""
        return Manifest(
            run_id=run_id_of(self.id, "", model_id, None),
            created=self.created,
            skill="audit",
            skill_version=str(MANIFEST_VERSION),
            model_id=model_id,
            provider=provider,
            replicates=self.replicates,
            seed=self.seed,
            audit=self.id,
            cases=self.cells(),
            digests={"settings": settings},
            evaluator_version=__version__,
            transport=self.transport,
        )

    @property
    def doubts(self) -> list[str]:
        """Warnings about sizes that are too small, too few cases to draw, and skipped cases."""
        questions = {benchmark.name: len(benchmark.cases) for benchmark in self.benchmarks}
        sentences = size_warnings(len(self.models), len(self.scenarios), questions, self.replicates)
        for benchmark in self.benchmarks:
            if len(benchmark.cases) < (self.questions or 0):
                available = f"{counted(len(benchmark.cases), 'question')} of '{benchmark.name}'"
                sentences.append(f"{available}: {self.questions} were requested, but it has no more")
        for benchmark in self.benchmarks:
            if benchmark.unlabelled:
                skipped = f"{counted(benchmark.unlabelled, 'case')} of '{benchmark.name}'"
                sentences.append(f"{skipped} skipped: no ground truth")
            sentences += benchmark.left_out
        return sentences


def size_warnings(models: int, scenarios: int, questions: Mapping[str, int], replicates: int | None) -> list[str]:
    """Return a warning for each size that is too small. `questions` has the number of questions by benchmark."""
    few = [f"{name} {count}" for name, count in questions.items() if count < MIN_QUESTIONS]
    warnings = {
        f"{counted(models, 'model')}, fewer than {MIN_MODELS}: grades are only a ranking": models < MIN_MODELS,
        f"{counted(scenarios, 'scenario')}, fewer than {MIN_SCENARIOS}: σ is imprecise": scenarios < MIN_SCENARIOS,
        f"fewer than {MIN_QUESTIONS} questions ({', '.join(few)}): use the confidence intervals": bool(few),
        "one output per question: the noise within a scenario is unknown; use -n 2": replicates == 1,
    }
    return [warning for warning, applies in warnings.items() if applies]


def audit_folders(audits: Path) -> list[Path]:
    """Return the folders of all audits in a folder, oldest first."""
    return sorted(path.parent for path in audits.glob(f"*/{AUDIT}"))


def read_audit_manifest(path: Path) -> AuditManifest:
    """Read an audit.json; raise AuditError if it is invalid or of a newer version."""
    return read_versioned(AuditManifest, path, "manifest_version", MANIFEST_VERSION, AuditError)
