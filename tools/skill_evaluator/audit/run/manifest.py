"""audit.json: what a stability audit asks. Models × scenarios × benchmarks × cases × replicates, each with its digest.

Its own module because running, planning for CI and gathering go by it. A call's case is a cell, named
`<benchmark>/<scenario>/<case>`.
"""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from pydantic import Field, PositiveFloat, PositiveInt

from skill_evaluator.errors import AuditError
from skill_evaluator.files import FrozenModel, json_text, read_versioned, replace_text
from skill_evaluator.runner.schedule import Shard
from skill_evaluator.text import digest

AUDIT = "audit.json"
RUNS = "runs"  # beside it: one folder a model, or a shard of one
MANIFEST_VERSION = 1


class AuditedBenchmark(FrozenModel):
    """A component as it is asked: `cases` (id → digest) were drawn from the `of` that have a ground truth.

    `digests`: of its prompt, schema and declarations. `metric`: what an answer's score is.
    """

    name: str
    version: str
    metric: str
    weight: PositiveFloat
    of: PositiveInt
    unlabelled: int = 0
    cases: dict[str, str] = Field(min_length=1)
    digests: dict[str, str]

    @property
    def shaping(self) -> dict[str, str]:
        """Those of the digests that shape answers: the declarations only say how they are scored."""
        return {name: value for name, value in sorted(self.digests.items()) if name != "datasets"}


class AuditManifest(FrozenModel):
    """The file audit.json. `models`: by id, a digest of what each is told; `scenarios`: by name, of its template.

    `questions`: how many were to be drawn of each benchmark; None: all. `commit`: of the components.
    """

    manifest_version: int = MANIFEST_VERSION
    id: str
    created: str
    commit: str | None = None
    seed: int
    replicates: PositiveInt
    questions: PositiveInt | None
    models: dict[str, str] = Field(min_length=1)
    scenarios: dict[str, str] = Field(min_length=1)
    benchmarks: list[AuditedBenchmark] = Field(min_length=1)
    evaluator_version: str

    @property
    def questions_in_all(self) -> int:
        """Questions of all benchmarks together."""
        return sum(len(one.cases) for one in self.benchmarks)

    @property
    def calls_per_model(self) -> int:
        """How many calls each model is asked for."""
        return self.questions_in_all * len(self.scenarios) * self.replicates

    def cells(self, shard: Shard | None = None) -> dict[str, str]:
        """By cell, the digest of all that shapes its answers, in the order in which they are asked.

        A question is asked in every scenario before the next one is, and a shard has whole questions: wherever an
        audit is interrupted, the scenarios can be compared.
        """
        asked = list(self._questions())
        mine = {f"{one.name}/{case}" for one, case in asked}
        if shard is not None:
            mine = set(shard.of([f"{one.name}/{case}" for one, case in asked]))
        return {
            f"{one.name}/{scenario}/{case}": _cell_digest(one, case, template)
            for one, case in asked
            if f"{one.name}/{case}" in mine
            for scenario, template in self.scenarios.items()
        }

    def _questions(self) -> Iterator[tuple[AuditedBenchmark, str]]:
        """The first question of every benchmark, then the second, and so on."""
        for places in zip_longest(*([(one, case) for case in one.cases] for one in self.benchmarks)):
            yield from filter(None, places)


def _cell_digest(benchmark: AuditedBenchmark, case: str, template: str) -> str:
    shaping = (benchmark.cases[case], template, *(f"{name} {value}" for name, value in benchmark.shaping.items()))
    return digest("\n".join(shaping))


def parts_of(cell: str) -> tuple[str, str, str]:
    """Benchmark, scenario and case of a cell.

    >>> parts_of("geography/bare/q-17")
    ('geography', 'bare', 'q-17')
    """
    benchmark, scenario, case = cell.split("/")
    return benchmark, scenario, case


def write_manifest(folder: Path, manifest: AuditManifest) -> None:
    """Keep what an audit asks in its folder; raises StorageError."""
    replace_text(folder / AUDIT, json_text(manifest.model_dump(mode="json")))


def read_manifest(path: Path) -> AuditManifest:
    """Read an audit.json; raises AuditError when it is broken or of a newer version."""
    return read_versioned(AuditManifest, path, "manifest_version", MANIFEST_VERSION, AuditError)
