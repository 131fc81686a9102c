"""What `evaluate` is asked for. Its own module because help and the shell's completion import nothing else."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class EvaluationRequest:
    """What is to be evaluated, and how; each field is an option of `evaluate`, which says what it means."""

    skill: str
    replicates: int | None = None
    models: tuple[str, ...] = ()
    dry_run: bool = False
    cases: tuple[str, ...] = ()
    concurrency: int | None = None
    seed: int | None = None
    resume: str | None = None
    max_cost: float | None = None
    max_calls: int | None = None
    shard: str | None = None
    scenario: str | None = None
    bare: bool = False
    invocation: str | None = None
    adaptive: bool = False
    recorded: bool = False
    with_baseline: bool = False
    baseline_commit: str | None = None
    aa: bool = False
    neutral: int | None = None
    draft: bool = False
    batch: bool = False
    submit_only: bool = False
    results: Path | None = None
    leaderboard: bool = True
    components: Path = Path("components")
    fixtures: Path | None = None
    config: Path = Path(".evaluator")
