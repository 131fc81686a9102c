"""What is told of one run: its facts in words, its weakest fields as a table, remarks.

A finished record comes in. `quote` is how a text from outside is written: as it is on a terminal, as code on a page.
"""

from collections.abc import Callable, Iterator

from skill_evaluator.display import WHOLE, interval, number
from skill_evaluator.display.addresses import NO_SITE, Site
from skill_evaluator.display.safe_text import name_text, prose
from skill_evaluator.display.sheets import Cell, Sheet
from skill_evaluator.records.record import Record
from skill_evaluator.records.summaries import FieldSummary, Summary
from skill_evaluator.scoring.recording import Finished
from skill_evaluator.text import counted, listed

_DRAFT = "a draft: in no leaderboard and never a baseline; raise the version and evaluate it to have it recorded"
_WEAKEST = 5
_FAULTS = 3
FIGURES = ("strict mean", "95 % interval", "mean", "stdev", "n")
_FIELD_COLUMNS = (
    "weakest field",
    "accuracy",
    "right/n",
    "wrong",
    "missing",
    "extra",
    "stability",
    "cases in which it is",
)
Quote = Callable[[str], str]  # how a text from outside is written: `visible` on a terminal, `code_span` on a page


def cells(summary: Summary) -> tuple[str, ...]:
    """Return the figures of one metric, as FIGURES names them."""
    return (
        number(summary.strict_mean),
        interval(summary.ci95, summary.n_cases),
        number(summary.mean),
        number(summary.stdev),
        str(summary.n),
    )


def facts(record: Record, quote: Quote) -> str:
    """Return how a run went, in a line: calls, failures, cost, tokens, time."""
    cost = "unknown" if record.cost_usd is None else f"${record.cost_usd:.4f}"
    saved = f" ({record.saved_calls} calls saved: the verdict was settled)" if record.saved_calls else ""
    left_out = f" ({counted(len(record.not_applicable), 'case')} not applicable)" if record.not_applicable else ""
    failures = ", ".join(f"{count} {prose(kind)}" for kind, count in record.failures.items())
    if record.reasons:
        failures += f" ({', '.join(f'{quote(reason)} {count}' for reason, count in record.reasons.items())})"
    rate = record.tokens.hit_rate
    cached = "" if rate is None else f" ({rate:.0%} from a cache)"
    tokens = f"{_count(record.tokens.input)} in{cached}, {_count(record.tokens.output)} out"
    parts = [
        f"{counted(record.n_cases, 'case')} × {counted(record.replicates, 'replicate')}{saved}{left_out}",
        f"{record.scored} of {record.planned} scored",
        f"failures: {failures or 'none'}",
        f"cost {cost}",
        f"tokens {tokens}",
        f"latency p50 {number(record.latency_s.p50)} s, p95 {number(record.latency_s.p95)} s",
    ]
    return " · ".join(parts)


def incomplete(record: Record, quote: Quote) -> str:
    """Say that a run is no measurement, and why."""
    stopped = f", stopped by {quote(record.stopped)}" if record.stopped else ""
    return f"INCOMPLETE: coverage {record.coverage:.2f}{stopped}"


def weakest_sheet(record: Record, site: Site = NO_SITE) -> Sheet:
    """Return the fields with the lowest accuracy below 1; free text shows embedding similarity, else token F1."""
    scored = [(path, field) for path, field in record.per_field.items() if field.n]
    ranked = sorted(scored, key=lambda item: (_field_score(item[1]), item[0]))
    rows = []
    for path, field in ranked[:_WEAKEST]:
        score = _field_score(field)
        if score >= 1:
            break
        unit = " cosine" if field.embedding is not None else " F1" if field.token_f1 is not None else ""
        counts = (f"{field.right}/{field.n}", str(field.wrong), str(field.missing), str(field.extra))
        name = Cell(
            name_text(path) or WHOLE,
            code=True,
            link=site.page(record.skill, model=record.model_id, field=path),
        )
        standings = field.profile.model_dump() if field.profile else {}  # `3 right · 9 wrong · 2 flaky` of the cases
        profile = " · ".join(f"{count} {name.removeprefix('stable_')}" for name, count in standings.items() if count)
        figures = (number(score) + unit, *counts, number(field.stability), profile if field.profile else "–")
        rows.append((name, *map(Cell, figures)))
    return Sheet(columns=_FIELD_COLUMNS, rows=rows, numbers=frozenset(_FIELD_COLUMNS[1:-1]))


def remarks(record: Record, quote: Quote) -> list[str]:
    """Return what a draft is, what looks at the run mean, pass^k of several answers, and what broke the contract."""
    remarks = [*([_DRAFT] if record.draft else []), *_looked_at(record)]
    if record.served_otherwise is not None:
        remarks.append(quote(record.served_otherwise))
    if record.not_applicable:
        named = [f"{quote(case_id)} ({quote(why)})" for case_id, why in record.not_applicable.items()]
        remarks.append(f"not applicable to this model, and not asked: {listed(named)}")
    powers = {k: summary.mean for k, summary in record.pass_hat_k.items() if summary.mean is not None}
    if max(powers, default=1) > 1:
        remarks.append("exact k times in a row (pass^k): " + ", ".join(f"{k}: {number(p)}" for k, p in powers.items()))
    contract = record.contract
    if contract is not None and contract.errors:
        faults = "; ".join(
            f"{quote(name_text(fault.path)) if fault.path else 'the whole output'}: {fault.rule} {fault.count} "
            f"({quote(fault.message)})"
            for fault in contract.errors[:_FAULTS]
        )
        remarks.append(
            f"contract: {number(contract.valid)} of {contract.n} parsed outputs are valid, "
            f"{number(contract.valid_apart_from_extra_keys)} apart from extra keys; "
            f"{faults}{_more(len(contract.errors) - _FAULTS)}"
        )
    for title, keys in (("missing", contract.missing_keys), ("extra", contract.extra_keys)) if contract else ():
        if keys:
            named = [f"{quote(key)} {count}" for key, count in list(keys.items())[:_WEAKEST]]
            remarks.append(f"{title} top-level keys: {', '.join(named)}{_more(len(keys) - _WEAKEST)}")
    return remarks


def _looked_at(record: Record) -> Iterator[str]:
    """Yield what looks at an adaptive run mean for its scores."""
    adaptive = record.adaptive
    if adaptive is None:
        return
    planned = adaptive.planned_replicates
    if record.saved_calls:
        yield (
            f"stopped early: after {adaptive.looks[-1]} of {planned} replicates the verdict was settled, "
            f"{adaptive.verdict}, so the means above are too high or too low and no baseline; "
            f"evaluate {record.skill} --top-up {record.run_id} asks the rest"
        )
    corrected = adaptive.corrected.get(record.primary_metric)
    if corrected is not None:
        low, high = corrected.ci95
        yield (
            f"{record.primary_metric} corrected for the looks of --adaptive: {number(corrected.strict_mean)}, "
            f"95 % interval {low:.3f} to {high:.3f} on these cases"
        )


def _more(count: int) -> str:
    return f", and {count} more" if count > 0 else ""


def _field_score(field: FieldSummary) -> float:
    return next(float(score) for score in (field.embedding, field.token_f1, field.accuracy) if score is not None)


def places(finished: Finished) -> list[str]:
    """Return where the record of a run and its answers are."""
    return [f"record  {finished.record_path}", f"outputs {finished.folder}"]


def _count(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"
