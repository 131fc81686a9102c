"""The state of a component: its newest version, what to ship, whether that version is worse, where, and what to do."""

from collections.abc import Iterator, Sequence
from typing import Any

from skill_evaluator.display import ends, signed
from skill_evaluator.display.addresses import component_address, verdict_address
from skill_evaluator.records.archive import precedence
from skill_evaluator.records.record import Row
from skill_evaluator.reports.summary import Reader, conclude, fall_words, try_step
from skill_evaluator.site.component import verdict_of
from skill_evaluator.text import counted, listed, version_words
from skill_evaluator.verdicts.decide.results import ComparisonResult, Comparisons, ModelVerdict, new_cases_words
from skill_evaluator.verdicts.decide.rules import WORST_FIRST
from skill_evaluator.verdicts.history.component import ComponentStanding
from skill_evaluator.verdicts.history.series import History
from skill_evaluator.verdicts.planning.sizing import can_show

SOUND = ("improved", "unchanged")
_MAX_NAMED = 2  # models or cases
_NEWEST = 5  # versions of a model
_LARGE_DROP = 0.1  # the overview names a field that fell further even if the verdict is sound


def component_state(
    name: str, standing: ComponentStanding, comparisons: Comparisons, rows: Sequence[Row]
) -> dict[str, Any]:
    """Return the state of a component, in words.

    It is an `alarm` if the newest version regressed or could not be measured. `verdicts` are those since the version
    before and since the accepted one. `where` names the largest loss with one model since one version and its
    confidence interval, `next` the next step; the overview shows neither if the state is `calm`. `past` are regressions
    of earlier versions.
    """
    newest = standing.history.newest
    verdicts = list(_verdicts(standing))
    unmeasured, failed = _unmeasured(standing, rows)
    regressed = any(one["verdict"] == "regressed" for one in verdicts)
    where, following, calm = _finding(name, standing, comparisons.versions.get(newest))
    return {
        "component": name,
        "address": component_address(name),
        "version": newest,
        "verdict_address": verdict_address(name, newest),
        "alarm": regressed or failed,
        "ship": ship_words(standing),
        "verdicts": verdicts,
        "where": where,
        "next": following,
        "calm": calm and not regressed,
        "unmeasured": unmeasured,
        "past": list(_past(name, standing.history)),
    }


def ship_words(standing: ComponentStanding) -> str:
    """Return the version and model to ship, in words."""
    advice, newest = standing.ranking.advice, standing.history.newest
    models = [advice.model_id] if advice.model_id else list(standing.newest)
    model = f" with {models[0]}" if len(models) == 1 else ""
    if advice.version in (None, newest):
        return f"ship{model or ' (no model named)'}"
    return f"ship {version_words(advice.version or '')}{model} instead"


def _verdicts(standing: ComponentStanding) -> Iterator[dict[str, Any]]:
    """Yield each verdict on the newest version with its models and the version it is against, the latest first."""
    models = list(standing.history.newest_steps)
    by_verdict: dict[tuple[str, str | None], list[str]] = {}
    for model in models:
        stands = verdict_of(model, standing)
        for one in (stands, stands["also"]):
            if one is not None:
                by_verdict.setdefault((one["verdict"] or "first", one["before"]), []).append(model)
    rank = ["first", *WORST_FIRST]
    ordered = sorted(by_verdict, key=lambda pair: rank.index(pair[0]))
    for verdict, before in sorted(ordered, key=lambda pair: precedence(pair[1] or "0.0.0"), reverse=True):
        named = by_verdict[verdict, before]
        words = f" since {version_words(before)}" if before else ""
        words += "" if len(named) == len(models) else f" with {listed(named, _MAX_NAMED)}"
        yield {"verdict": verdict, "since": words}


def _unmeasured(standing: ComponentStanding, rows: Sequence[Row]) -> tuple[list[str], bool]:
    """Return the reasons why runs of the newest version do not count, and True if outputs could not be read."""
    newest = precedence(standing.history.newest)
    measured = {(record.model_id, record.skill_version) for record in standing.newest.values()}
    lacking = {
        (row.model_id, row.skill_version): row
        for row in rows
        if not row.complete and row.scenario is None and precedence(row.skill_version) >= newest
    }
    words, failed = [], False
    for (model, version), row in lacking.items():
        if (model, version) not in measured:
            failed = failed or row.usable is not None
            why = "not finished" if row.usable is None else "could not be measured, too few outputs could be read"
            scored = f"{row.scored} of {counted(row.planned, 'call')} scored"
            words.append(f"{version_words(version)} with {model}: {why} ({scored})")
    return words, failed


def _finding(name: str, standing: ComponentStanding, result: ComparisonResult | None) -> tuple[str, str, bool]:
    """Return where the newest version lost most, the next step, and whether nothing of that is urgent."""
    models = [] if result is None else [model for model in result.models if model.baseline is not None]
    if result is None or not models:
        cases = min(record.n_cases for record in standing.newest.values())
        return can_show(cases), try_step(name, Reader()), True
    worst = min(models, key=lambda model: (WORST_FIRST.index(model.verdict), _fall(model)))
    if worst.verdict in SOUND:
        worst = min(models, key=_fall)
    calm = worst.verdict in SOUND and _fall(worst) > -_LARGE_DROP
    return where_words(worst, standing.history.metric), next_words(result, worst), calm


def _fall(model: ModelVerdict) -> float:
    """Return the difference of the field that fell most; 0 if none fell beyond its tolerance."""
    field = model.fell_most
    return 0.0 if field is None else field.difference or 0.0


def change_words(metric: str, difference: float, low: float | None, high: float | None) -> str:
    """Format the change of a metric, with its confidence interval if there is one."""
    words = f"{metric} {signed(difference)}"
    return words if low is None else f"{words}, 95 % confidence interval {signed(low)} to {signed(high)}"


def where_words(model: ModelVerdict, metric: str) -> str:
    """Describe the loss of a model since its baseline, with its confidence interval, in one sentence."""
    assert model.baseline is not None  # noqa: S101  (callers choose compared models)
    against = f"With {model.model_id} since {version_words(model.baseline.skill_version)}"
    if model.verdict == "incomparable":
        return f"{against}: {next(iter(model.reasons), 'nothing was compared')}"
    since = model.only_since_accepted
    if since is not None:
        figures = change_words(since.metric, since.difference, *since.ci95)
        return f"With {model.model_id} since {version_words(since.version)}: {figures}"
    fell = model.fell_most
    parts = [fall_words(fell) if fell else "nothing lost" if model.verdict in SOUND else ""]
    primary = next((one for one in model.metrics if one.metric == metric), None)
    if primary is not None and primary.difference is not None:
        parts.append(change_words(metric, primary.difference, *ends(primary.ci95, primary.n_cases)))
    cases = [case.case_id for case in model.cases.broke] or model.cases.every_answer_worse
    parts.append(f"cases {listed(cases, _MAX_NAMED)}" if cases else "")
    parts.append(new_cases_words(model.n_cases) if model.verdict in SOUND else "")
    return f"{against}, on these {counted(model.n_cases, 'case')}: {'; '.join(filter(None, parts))}"


def judged_alone(result: ComparisonResult, model: ModelVerdict) -> ComparisonResult:
    """Return a comparison with one of its models."""
    return result.model_copy(update={"models": [model], "verdict": model.verdict})


def next_words(result: ComparisonResult, model: ModelVerdict) -> str:
    """Return the next step for a model; the pages link to its outputs, so that no command shows them."""
    answers: dict[str, str] | None = None if model.verdict in ("regressed", "inconclusive") else {}
    return conclude(judged_alone(result, model), Reader(outputs=answers)).next


def _past(name: str, history: History) -> Iterator[dict[str, str]]:
    """Yield each earlier version that regressed, the latest first, and the version that fixed it."""
    fell: dict[tuple[str, str], list[tuple[str, str]]] = {}
    dates: dict[str, str] = {}
    for model in history.models:
        for at, point in enumerate(model.points[-_NEWEST:]):
            step, later = point.step, model.points[-_NEWEST:][at + 1 :]
            if step is None or step.verdict != "regressed" or point.version == history.newest:
                continue
            fixed = next((one.version for one in later if one.step and one.step.verdict == "improved"), "")
            fell.setdefault((point.version, step.before), []).append((model.model_id, fixed))
            dates[point.version] = max(dates.get(point.version, ""), point.timestamp[:10])
    for version, before in sorted(fell, key=lambda pair: precedence(pair[0]), reverse=True):
        models = fell[version, before]
        fixes = {fixed for _, fixed in models}
        end = "no later version is better" if "" in fixes else f"fixed in {version_words(max(fixes, key=precedence))}"
        named = listed([model for model, _ in models], _MAX_NAMED)
        words = f"had regressed since {version_words(before)} with {named} ({dates[version]}); {end}"
        yield {"version": version, "address": verdict_address(name, version), "words": words}
