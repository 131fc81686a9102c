"""Build the record of a run from manifest, component and scorecard."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from skill_evaluator import __version__
from skill_evaluator.library.cases import find_cases
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Model, Settings
from skill_evaluator.library.prompts import DOCUMENT, TURNS
from skill_evaluator.providers import Configuration, Kinds
from skill_evaluator.providers.base import LOST, Usage
from skill_evaluator.records.record import (
    MIN_USABLE,
    SCORED,
    SCORER_VERSION,
    CaseRecord,
    FieldCount,
    ModelSettings,
    Record,
    served_of,
)
from skill_evaluator.records.summaries import AMOUNTS, CallSpreads, CaseAmount, JudgedChecks, Latency, Quantiles, Tokens
from skill_evaluator.repository import commit_of
from skill_evaluator.runner.journal import Manifest
from skill_evaluator.runner.prices import answer_price, hit_rate, price_of, usage_cost
from skill_evaluator.scoring import summaries
from skill_evaluator.scoring.answers import CaseScore, CompletedCall, Scorecard
from skill_evaluator.stats import by_key, quantile, rounded, total_or_none


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A run with its record, the path of the record (among the component's records if saved there), and its folder."""

    record: Record
    record_path: Path
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """Builds the records of runs of one component. `kinds` has the providers by name.

    The commits last changed the component's prompt and cases. They are None outside git.
    """

    component: Component
    settings: Settings
    kinds: Kinds
    prompt_commit: str | None = None
    dataset_commit: str | None = None

    @classmethod
    def of(cls, component: Component, configuration: Configuration, fixtures: Path | None) -> "Recorder":
        """Return the recorder of a component with its commits. Raise FixtureError if it has no cases."""
        return cls(
            component=component,
            settings=configuration.settings,
            kinds=configuration.kinds,
            prompt_commit=commit_of(*component.files),
            dataset_commit=commit_of(*find_cases(component, fixtures)),
        )

    def record(
        self,
        model: Model,
        manifest: Manifest,
        scorecard: Scorecard,
        *,
        stopped: str | None = None,
        judge: JudgedChecks | None = None,
    ) -> Record:
        """Return the record of a run. `stopped` is the reason if it ended early, `judge` has the judged checks."""
        component, server = self.component, manifest.server
        price = price_of(model, self.kinds[model.provider])
        completed = scorecard.completed
        latencies = [call.latency_s for call in completed if call.latency_s is not None]
        cost_of = {
            (served, usage): usage_cost(answer_price(model, price, served), usage)
            for served, usage in {(call.served, call.usage) for call in completed}
        }
        costs = [cost_of[call.served, call.usage] for call in completed]
        lost = [usage_cost(price, Usage())] * scorecard.reasons.get(LOST, 0)
        amounts = amounts_by_case(completed, costs)
        return Record.view(
            manifest,
            timestamp=manifest.created,
            prompt_commit=manifest.prompt_commit or self.prompt_commit,
            dataset_commit=self.dataset_commit,
            served_model=served_of([call.served for call in completed]),
            **counts_of(scorecard, latencies, self.settings.required_coverage, stopped),
            primary_metric=component.primary_metric,
            accuracy=summaries.accuracy(scorecard, component.metrics),
            reproducibility=summaries.reproducibility(scorecard),
            per_field=summaries.fields(scorecard, component.plan),
            per_array=summaries.arrays(scorecard),
            pass_hat_k=summaries.pass_hat_k(scorecard),
            contract=None if component.schema is None else summaries.contract(scorecard),
            per_case=[
                case_record(case, manifest.cases[case.case_id], manifest.inputs, amounts.get(case.case_id, {}))
                for case in scorecard.cases
            ],
            retries=scorecard.retries,
            left_out=self.component.left_out,
            judged=judge,
            tokens=_tokens([call.usage for call in completed]),
            cost_usd=rounded(total_or_none([*costs, *lost])),
            calls=CallSpreads(latency_s=Quantiles.of(latencies, 3), cost_usd=Quantiles.of(costs, 9)),
            settings=self._settings_of(model),
            server=server if server and (model.base_url or server.fingerprints or server.renamed) else None,
            digests={**manifest.digests, "datasets": component.digests["datasets"], "answers": scorecard.answers},
            scorer_version=SCORER_VERSION,
        )

    def _settings_of(self, model: Model) -> ModelSettings:
        kind = self.kinds[model.provider]
        sampling = kind.sampling(model)
        is_unset = model.profile == "deterministic" and "temperature" in sampling.unavailable and not kind.free
        return ModelSettings(
            api_model=model.api_name,
            profile="unset" if is_unset else model.profile,  # the vendor's default temperature applies
            structured_output=model.structured_output,
            max_output_tokens=model.params.max_output_tokens,
            sent=dict(sampling.sent),
            unavailable=list(sampling.unavailable),
            params={name: value for name, value in model.params.extra.items() if name not in sampling.unavailable},
            base_url=model.public_url,
            place=model.place,
            region=model.region,
            timeout_s=self.settings.timeout_s,
        )


def counts_of(
    scorecard: Scorecard, latencies_s: Sequence[float], required_coverage: float, stopped: str | None = None
) -> dict[str, Any]:
    """Return keyword arguments of `Record`: counts of cases, calls and outcomes, completeness, latency and version.

    `stopped` is the reason if the run ended early.
    """
    coverage, failures = scorecard.answered / scorecard.planned, scorecard.failures
    scored = scorecard.planned - sum(failures.values())
    usable, has_all_calls = scored / scorecard.planned, stopped is None and coverage >= required_coverage
    p50, p95 = (rounded(quantile(latencies_s, share), 3) for share in (0.5, 0.95))
    return {
        "replicates": scorecard.replicates,
        "n_cases": len(scorecard.cases),
        "planned": scorecard.planned,
        "scored": scored,
        "coverage": round(coverage, 6),
        "complete": has_all_calls and usable >= MIN_USABLE,
        "usable": round(usable, 6) if has_all_calls and usable < MIN_USABLE else None,
        "stopped": stopped,
        "failures": failures,
        "reasons": dict(scorecard.reasons),
        "faults": list(scorecard.faults),
        "latency_s": Latency(p50=p50, p95=p95),
        "evaluator_version": __version__,
    }


def amounts_by_case(
    completed: Sequence[CompletedCall], costs: Sequence[float | None]
) -> dict[str, dict[str, CaseAmount]]:
    """Return the mean output tokens, cost and latency of each case's calls, by case id, then by name of the amount.

    `costs` are in USD, one per call. An amount that is unknown for all calls of a case is omitted.
    """
    tokens: list[float | None] = [call.usage.output_tokens for call in completed]
    latencies_s = [call.latency_s for call in completed]
    by_case: dict[str, dict[str, CaseAmount]] = {}
    for name, values in zip(AMOUNTS, (tokens, costs, latencies_s), strict=True):
        measured = ((call.case_id, value) for call, value in zip(completed, values, strict=True) if value is not None)
        for case_id, amounts in by_key(measured).items():
            by_case.setdefault(case_id, {})[name] = CaseAmount(mean=round(fmean(amounts), 9), n=len(amounts))
    return by_case


def case_record(
    case: CaseScore, digest: str, inputs: Sequence[str] = (), amounts: Mapping[str, CaseAmount] = {}
) -> CaseRecord:
    """Return the record of a case. `digest` is the case's digest. `inputs` are the names that the prompt uses."""
    parts = {name: part for name, part in case.parts.items() if name in (*inputs, TURNS)}
    rounded_values = {value: rounded(value) for values in case.metrics.values() for value in values}
    return CaseRecord(
        case_id=case.case_id,
        accuracy=summaries.case_accuracy(case),
        reproducibility={name: rounded(value) for name, value in case.agreement.metrics.items()},
        failures={kind: case.outcomes.count(kind) for kind in sorted(set(case.outcomes) - {SCORED})},
        digest=digest,
        parts={} if parts == {DOCUMENT: digest} else parts,
        outcomes=list(case.outcomes),
        replicates={name: [rounded_values[value] for value in values] for name, values in case.metrics.items()},
        fields={path: FieldCount(right=total.right, n=total.n) for path, total in case.fields.items()},
        profile=dict(case.profile),
        arrays={
            path: replace(lengths, stability=round(lengths.stability, 6))
            for path, lengths in case.agreement.arrays.items()
        },
        exact=case.exact,
        amounts=dict(amounts),
        checks=dict(case.checks),
    )


def _tokens(usages: Sequence[Usage]) -> Tokens:
    read, written = [_total(usages, part) for part in ("cache_read_tokens", "cache_write_tokens")]
    total = _total(usages, "input_tokens")
    cached = None if read is None and written is None else (read or 0) + (written or 0)
    return Tokens(
        input=total,
        output=_total(usages, "output_tokens"),
        cache_read=read,
        cache_write=written,
        uncached=None if total is None or cached is None else total - cached,
        hit_rate=hit_rate(usages),
    )


def _total(usages: Sequence[Usage], name: str) -> int | None:
    counts = [getattr(usage, name) for usage in usages]
    return sum(counts) if counts and None not in counts else None
