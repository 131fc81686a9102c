"""Manifests of audits of a size, which nobody ran."""

from collections.abc import Sequence

from skill_evaluator.audit.manifest import AuditedBenchmark, AuditManifest

IDS = [f"q-{number:02d}" for number in range(60)]


def manifest(sizes: Sequence[int], scenarios: int, replicates: int = 2, models: int = 1) -> AuditManifest:
    """Draw benchmarks of so many questions each."""
    return AuditManifest(
        id="20261121T000000Z-abcdef",
        created="2026-11-21T00:00:00Z",
        seed=0,
        replicates=replicates,
        questions=None,
        models={f"m{number}": f"sha256:m{number}" for number in range(models)},
        scenarios={f"s{number}": f"sha256:s{number}" for number in range(scenarios)},
        benchmarks=[
            AuditedBenchmark(
                name=f"b{place}",
                version="1.0.0",
                metric="exact_match",
                weight=1.0,
                of=size,
                cases={case: f"sha256:{case}" for case in IDS[:size]},
                digests={"prompt": "p", "schema": "s", "datasets": "d"},
            )
            for place, size in enumerate(sizes)
        ],
        evaluator_version="0",
    )
