"""Build the record of a run from manifest, component and scorecard.

Replicates are averaged within a case, then cases. Only field counts are summed over cases and replicates.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from skill_evaluator import __version__
from skill_evaluator.comparing.field_plan import FieldPlan
from skill_evaluator.library.cases import find_cases
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Model, Settings
from skill_evaluator.library.prompts import DOCUMENT, TURNS
from skill_evaluator.metrics import REPRODUCIBILITY
from skill_evaluator.metrics.accuracy import KS, FieldCounts, macro_f1, pass_hat_k
from skill_evaluator.metrics.agreement import krippendorff_alpha
from skill_evaluator.providers import Configuration, Kinds
from skill_evaluator.providers.base import LOST, Usage
from skill_evaluator.records import record as records
from skill_evaluator.records.summaries import (
    AMOUNTS,
    ArraySummary,
    CallSpreads,
    CaseAmount,
    Commits,
    ContractFault,
    ContractSummary,
    Cost,
    FieldSummary,
    Filled,
    JudgedChecks,
    Latency,
    Profile,
    Quantiles,
    Summary,
    Tokens,
    ValueCounts,
)
from skill_evaluator.repository import commit_of
from skill_evaluator.runner.journal import Manifest
from skill_evaluator.runner.prices import answer_price, hit_rate, price_of, usage_cost
from skill_evaluator.scoring.scorer import CaseScore, CompletedCall, Scorecard
from skill_evaluator.stats import by_key, mean_or_none, quantile, rounded, stdev_or_none, total_or_none, unit_interval

_NULL_LABEL = "null"
Values = Sequence[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """Builds the records of runs of one component. `kinds` has the provider kinds by provider name."""

    component: Component
    settings: Settings
    kinds: Kinds
    git: Commits

    @classmethod
    def of(cls, component: Component, configuration: Configuration) -> "Recorder":
        """Return the recorder of a component with its commits.

        Raise NotEvaluatedError if the component has no cases. Raise FixtureError instead if it has records or declares
        its `fixtures` folder.
        """
        return cls(
            component=component,
            settings=configuration.settings,
            kinds=configuration.kinds,
            git=Commits(
                prompt_commit=commit_of(*component.files.prompts), dataset_commit=commit_of(*find_cases(component))
            ),
        )

    def record(
        self,
        model: Model,
        manifest: Manifest,
        scorecard: Scorecard,
        *,
        stopped: str | None = None,
        judge: JudgedChecks | None = None,
    ) -> records.Record:
        """Return the record of a run. `stopped` is the reason if the run ended early; `judge` has its judged checks."""
        component, server = self.component, manifest.server
        price = price_of(model, self.kinds[model.provider])
        completed = scorecard.completed
        latencies = [call.latency_s for call in completed if call.latency_s is not None]
        costs = [usage_cost(answer_price(model, price, call.served), call.usage) for call in completed]
        lost = [usage_cost(price, Usage())] * scorecard.reasons.get(LOST, 0)
        amounts = amounts_by_case(completed, costs)
        return records.Record.view(
            manifest,
            timestamp=manifest.created,
            git=Commits(
                prompt_commit=manifest.prompt_commit or self.git.prompt_commit, dataset_commit=self.git.dataset_commit
            ),
            served_model=records.served_of([call.served for call in completed]),
            **counts_of(scorecard, self.settings.required_coverage, stopped),
            primary_metric=component.scoring.primary_metric,
            accuracy=summarize_accuracy(scorecard, component.scoring.metrics),
            reproducibility=summarize_reproducibility(scorecard),
            per_field=summarize_fields(scorecard, component.scoring.plan),
            per_array=summarize_arrays(scorecard),
            pass_hat_k=summarize_pass_hat_k(scorecard),
            contract=None if component.contract.schema is None else summarize_contract(scorecard),
            per_case=[
                case_record(case, manifest.cases[case.case_id], manifest.inputs, amounts.get(case.case_id, {}))
                for case in scorecard.cases
            ],
            retries=scorecard.retries,
            left_out=self.component.left_out,
            judged=judge,
            cost=Cost(
                tokens=_tokens([call.usage for call in completed]),
                cost_usd=rounded(total_or_none([*costs, *lost])),
                latency_s=latency_of(latencies),
            ),
            calls=CallSpreads(latency_s=Quantiles.of(latencies, 3), cost_usd=Quantiles.of(costs, 9)),
            settings=self._settings_of(model),
            server=server if server and (model.base_url or server.fingerprints or server.renamed) else None,
            digests={
                **manifest.digests,
                "datasets": component.digests["datasets"],
                "answers": scorecard.digest,
            },
            scorer_version=records.SCORER_VERSION,
        )

    def _settings_of(self, model: Model) -> records.ModelSettings:
        kind = self.kinds[model.provider]
        sampling = kind.sampling(model)
        is_unset = model.profile == "deterministic" and "temperature" in sampling.unavailable and not kind.free
        return records.ModelSettings.view(
            model,
            api_model=model.api_name,
            profile="unset" if is_unset else model.profile,  # the vendor's default temperature applies
            max_output_tokens=model.params.max_output_tokens,
            sent=dict(sampling.sent),
            unavailable=list(sampling.unavailable),
            params={name: value for name, value in model.params.extra.items() if name not in sampling.unavailable},
            base_url=model.public_url,
            timeout_s=self.settings.timeout_s,
        )


def latency_of(latencies_s: Sequence[float]) -> Latency:
    """Return the median and 95 % quantile of latencies in seconds, to a millisecond; None if there are no latencies."""
    p50, p95 = (rounded(quantile(latencies_s, share), 3) for share in (0.5, 0.95))
    return Latency(p50=p50, p95=p95)


def counts_of(scorecard: Scorecard, required_coverage: float, stopped: str | None = None) -> dict[str, Any]:
    """Return the counts, completeness and evaluator version of a run, as keyword arguments of `Record`.

    `stopped` is the reason if the run ended early.
    """
    coverage, failures = scorecard.answered / scorecard.planned, scorecard.failures
    scored = scorecard.planned - sum(failures.values())
    usable, has_all_calls = scored / scorecard.planned, stopped is None and coverage >= required_coverage
    return {
        "replicates": scorecard.replicates,
        "n_cases": len(scorecard.cases),
        "planned": scorecard.planned,
        "scored": scored,
        "coverage": round(coverage, 6),
        "complete": has_all_calls and usable >= records.MIN_USABLE,
        "usable": round(usable, 6) if has_all_calls and usable < records.MIN_USABLE else None,
        "stopped": stopped,
        "failures": failures,
        "reasons": dict(scorecard.reasons),
        "faults": list(scorecard.faults),
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
) -> records.CaseRecord:
    """Return the record of a case. `digest` is the case's digest. `inputs` names the inputs that the prompt uses."""
    parts = {name: part for name, part in case.parts.items() if name in (*inputs, TURNS)}
    return records.CaseRecord.view(
        case,
        accuracy=case_accuracy(case),
        reproducibility={name: rounded(value) for name, value in case.agreement.metrics.items()},
        failures={kind: case.outcomes.count(kind) for kind in sorted(set(case.outcomes) - {records.SCORED})},
        digest=digest,
        parts={} if parts == {DOCUMENT: digest} else parts,
        replicates={name: [rounded(value) for value in values] for name, values in case.metrics.items()},
        fields={path: records.FieldCount(right=total.right, n=total.n) for path, total in case.fields.items()},
        arrays={
            path: replace(lengths, stability=round(lengths.stability, 6))
            for path, lengths in case.agreement.arrays.items()
        },
        amounts=amounts,
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


def summarize_accuracy(scorecard: Scorecard, metrics: Iterable[str]) -> dict[str, Summary]:
    """Return the summary of each metric over the cases for which it is defined. See docs/metrics.md for the figures."""
    summaries = {}
    for name in metrics:
        cases = [case for case in scorecard.cases if name not in case.undefined]
        scored = [_measured(case.metrics[name]) for case in cases]
        strict = [_strict_values(case, name) for case in cases]
        case_means = [fmean(measured) for values in strict if (measured := _measured(values))]
        replicate_means = [fmean(measured) for values in zip(*strict, strict=True) if (measured := _measured(values))]
        summaries[name] = Summary(
            mean=rounded(mean_or_none([fmean(values) for values in scored if values])),
            strict_mean=rounded(mean_or_none(case_means)),
            stdev=rounded(stdev_or_none(replicate_means)),
            stdev_cases=rounded(stdev_or_none(case_means)),
            n=sum(map(len, scored)),
            n_cases=len(case_means),
            ci95=_interval(case_means),
        )
    return summaries


def _strict_values(case: CaseScore, name: str) -> Values:
    return [
        records.strict_score(outcome, value) for outcome, value in zip(case.outcomes, case.metrics[name], strict=True)
    ]


def _measured(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def case_accuracy(case: CaseScore) -> dict[str, records.CaseAccuracy]:
    """Return the accuracy of one case by metric. Metrics that are undefined for the case are omitted."""
    return {
        name: records.CaseAccuracy(
            mean=rounded(mean_or_none(scored := _measured(case.metrics[name]))),
            strict_mean=rounded(mean_or_none(_measured(_strict_values(case, name)))),
            n=len(scored),
        )
        for name in case.metrics
        if name not in case.undefined
    }


def summarize_reproducibility(scorecard: Scorecard, metrics: Iterable[str] = REPRODUCIBILITY) -> dict[str, Summary]:
    """Return the summary of each agreement metric over the cases with a value. `n` and `n_cases` count these cases."""
    summaries = {}
    for name in metrics:
        bounds = (1.0, max(2.0, float(scorecard.replicates))) if REPRODUCIBILITY[name].is_count else (0.0, 1.0)
        summaries[name] = _over_cases(_measured(case.agreement.metrics[name] for case in scorecard.cases), *bounds)
    return summaries


def _over_cases(values: Sequence[float], lowest: float = 0.0, highest: float = 1.0) -> Summary:
    mean = rounded(mean_or_none(values))
    return Summary(
        mean=mean,
        strict_mean=mean,
        stdev=None,
        stdev_cases=rounded(stdev_or_none(values)),
        n=len(values),
        n_cases=len(values),
        ci95=_interval(values, lowest, highest),
    )


def summarize_pass_hat_k(scorecard: Scorecard) -> dict[int, Summary]:
    """Return the summary of pass^k over cases, by k. k is 1, 2, 3, 5 and 10, up to the number of replicates.

    An output succeeds if it equals the truth; unparseable, refused and truncated outputs fail. Cases without ground
    truth or with fewer than k outputs are excluded.
    """
    counts = [(case.exact, case.answered) for case in scorecard.cases if case.exact is not None]
    return {
        k: _over_cases(_measured(pass_hat_k(exact, answered, k) for exact, answered in counts))
        for k in KS
        if k <= scorecard.replicates
    }


def summarize_contract(scorecard: Scorecard) -> ContractSummary:
    """Summarize the validity, schema errors, missing keys and extra keys of all parsed outputs."""
    outputs = [output for case in scorecard.cases for output in case.contracts]
    n = sum(times for _, times in outputs)
    valid = sum(times for output, times in outputs if output.holds)
    apart_from_extra = sum(times for output, times in outputs if output.holds_but_for_extra_keys)
    missing: Counter[str] = Counter()
    extra: Counter[str] = Counter()
    faults: Counter[tuple[str, str]] = Counter()
    messages: dict[tuple[str, str], str] = {}  # the alphabetically first message of each fault
    for output, times in outputs:
        missing.update(dict.fromkeys(output.missing_keys, times))
        extra.update(dict.fromkeys(output.extra_keys, times))
        for path, rule, message in output.errors:
            faults[path, rule] += times
            messages[path, rule] = min(message, messages.get((path, rule), message))
    return ContractSummary(
        n=n,
        valid=rounded(valid / n if n else None),
        valid_apart_from_extra_keys=rounded(apart_from_extra / n if n else None),
        errors=[
            ContractFault(path=path, rule=rule, count=count, message=messages[path, rule])
            for (path, rule), count in _commonest(faults).items()
        ],
        missing_keys=_commonest(missing),
        extra_keys=_commonest(extra),
    )


def _commonest(counts: Counter[Any]) -> dict[Any, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _interval(values: Sequence[float], lowest: float = 0.0, highest: float = 1.0) -> tuple[float, float] | None:
    span = highest - lowest
    bounds = unit_interval([min(1.0, max(0.0, (value - lowest) / span)) for value in values])
    return bounds and (round(lowest + bounds[0] * span, 6), round(lowest + bounds[1] * span, 6))


def summarize_fields(scorecard: Scorecard, plan: FieldPlan) -> dict[str, FieldSummary]:
    """Return the summary of each field and check by path. `plan` has the comparators of the fields."""
    cases = scorecard.cases
    paths = dict.fromkeys(path for case in cases for path in (*case.fields, *case.agreement.stability))
    checks = {records.check_path(check_id) for case in cases for check_id in case.checks}
    return {
        path: _summarize_field(cases, path, records.CHECK if path in checks else plan.leaf(path).compare or "exact")
        for path in paths
    }


def _summarize_field(cases: Sequence[CaseScore], path: str, compare: str) -> FieldSummary:
    if compare == records.CHECK:
        cases = [case for case in cases if path in case.fields]
    total = FieldCounts()
    for case in cases:
        total.add(case.fields.get(path, FieldCounts()))
    confusion: dict[str, dict[str, int]] = {}
    for (truth, output), count in total.confusion.items():
        confusion.setdefault(truth, {})[output] = count
    labelled = {(_label(truth), _label(output)): count for (truth, output), count in total.confusion.items()}
    stabilities = [case.agreement.stability[path] for case in cases if path in case.agreement.stability]
    parsed = sum(case.parsed for case in cases if case.labelled and compare != records.CHECK)
    return FieldSummary(
        compare=compare,
        accuracy=rounded(total.right / total.n if total.n else None),
        counts=ValueCounts.view(total),
        stability=rounded(mean_or_none(stabilities)),
        token_f1=rounded(total.token_f1 / total.texts if total.texts else None),
        rouge_l=rounded(total.rouge_l / total.texts if total.texts else None),
        confusion=confusion or None,
        macro_f1=rounded(macro_f1(labelled)),
        # outputs without the path agree with each other
        alpha=rounded(krippendorff_alpha(case.agreement.values.get(path, {None: case.parsed}) for case in cases)),
        filled=Filled(n=parsed, output=total.filled, truth=total.filled_in_truth) if parsed else None,
        profile=Profile.model_validate(Counter(case.profile[path] for case in cases if path in case.profile)),
    )


def _label(label: str) -> str | None:
    return None if label == _NULL_LABEL else label


def summarize_arrays(scorecard: Scorecard) -> dict[str, ArraySummary]:
    """Return the summary of each array's lengths by path, over cases with at least two outputs."""
    by_path = by_key(each for case in scorecard.cases for each in case.agreement.arrays.items())
    summaries = {}
    for path, cases in by_path.items():
        spreads = [(lengths.longest or 0) - (lengths.shortest or 0) for lengths in cases]
        summaries[path] = ArraySummary(
            stability=round(sum(lengths.stability for lengths in cases) / len(cases), 6),
            n_cases=len(cases),
            varied=sum(spread > 0 for spread in spreads),
            widest=max(spreads),
        )
    return summaries
