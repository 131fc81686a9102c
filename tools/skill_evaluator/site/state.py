"""The state of a component: what to ship, and whether its newest version is worse, where, how sure, and what to do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from skill_evaluator.display.addresses import case_address, compare_address, component_address, verdict_address
from skill_evaluator.display.pages import Line, LinePart
from skill_evaluator.display.sheets import Cell
from skill_evaluator.records.archive import precedence
from skill_evaluator.records.record import Row
from skill_evaluator.reports.summary import Reader, fall_words, measure_step, next_step, sure_words, try_step
from skill_evaluator.site.component import verdict_of
from skill_evaluator.text import counted, listed, version_words
from skill_evaluator.verdicts.component import ComponentStatus
from skill_evaluator.verdicts.decide.results import ComparisonResult, Comparisons, ModelVerdict, new_cases_words
from skill_evaluator.verdicts.decide.rules import WORST_FIRST
from skill_evaluator.verdicts.shipping import History
from skill_evaluator.verdicts.sizing import can_show

SOUND = ("improved", "unchanged")
_MAX_NAMED = 2  # models
_MAX_CASES = 3
_NEWEST = 5  # versions of a model
_LARGE_DROP = 0.1  # a field that fell further is named even if the verdict is improved or unchanged


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentState:
    """The newest version of a component. If it was never measured, `version` is "" and `reason` names the reason.

    `alarm`: it regressed or could not be measured. `calm`: nothing was lost. `verdicts` pairs each verdict with text on
    its baseline. `where` names the largest loss, `sure` its evidence, and `next` the next step, all for one model and
    baseline. `past` has a line for each earlier version that regressed.
    """

    component: str
    version: str = ""
    reason: str = ""
    alarm: bool = False
    calm: bool = False
    ship: str = ""
    verdicts: Sequence[tuple[str, str]] = ()
    where: Line = field(default_factory=Line)
    sure: str = ""
    next: Line = field(default_factory=Line)
    unmeasured: Sequence[str] = ()
    past: Sequence[Line] = ()

    @property
    def address(self) -> str:
        """The address of the component's page."""
        return component_address(self.component)

    @property
    def verdict_address(self) -> str:
        """The address of the verdict on the newest version."""
        return verdict_address(self.component, self.version)


def component_state(
    name: str, status: ComponentStatus, comparisons: Comparisons, rows: Sequence[Row]
) -> ComponentState:
    """Return the state of a measured component; `rows` are all its runs, complete or not."""
    newest = status.history.newest
    verdicts = list(_verdicts_since(status))
    unmeasured, failed = _unmeasured_runs(status, rows)
    regressed = any(verdict == "regressed" for verdict, _ in verdicts)
    result = comparisons.versions.get(newest)
    model = None if result is None else _deciding_model(result, status)
    if result is None or model is None:
        where = Line("there is no lower version to compare it with")
        sure = can_show(min(record.n_cases for record in status.newest.values()))
        following, calm = Line(try_step(name, Reader())), True
    else:
        where, sure, following = _where_line(name, model), certainty(model), _next_line(result, model)
        if status.history.unmeasured:
            following = Line(measure_step(name, Reader()))
        calm = model.verdict in SOUND and _largest_fall(model) > -_LARGE_DROP
    return ComponentState(
        component=name,
        version=newest,
        alarm=regressed or failed,
        calm=calm and not regressed,
        ship=_ship_words(status),
        verdicts=verdicts,
        where=where,
        sure=sure,
        next=following,
        unmeasured=unmeasured,
        past=list(_past_regressions(name, status.history)),
    )


def _ship_words(status: ComponentStatus) -> str:
    advice, newest = status.ranking.advice, status.history.newest
    models = [advice.model_id] if advice.model_id else list(status.newest)
    model = f" with {models[0]}" if len(models) == 1 else ""
    unnamed = "" if model else " (no model stands out)"
    if advice.version in (None, newest):
        return f"ship{model}{unnamed}"
    return f"ship {version_words(advice.version or '')}{model} instead{unnamed}"


def _deciding_model(result: ComparisonResult, status: ComponentStatus) -> ModelVerdict | None:
    """Return the model to show: the one that lost most, else the one to ship. Return None if none is compared."""
    models = [model for model in result.models if model.baseline is not None]
    if not models:
        return None
    worst = min(models, key=lambda model: (WORST_FIRST.index(model.verdict), _largest_fall(model)))
    fell = min(models, key=_largest_fall)
    if worst.verdict == "regressed":
        return worst
    if _largest_fall(fell) <= -_LARGE_DROP:
        return fell
    return next((model for model in models if model.model_id == status.ranking.advice.model_id), worst)


def _verdicts_since(status: ComponentStatus) -> Iterator[tuple[str, str]]:
    """Yield each verdict on the newest version and a text on its baseline and models, the latest baseline first."""
    models = list(status.history.newest_steps)
    by_verdict: dict[tuple[str, str | None], list[str]] = {}
    for model in models:
        current = verdict_of(model, status)
        for verdict in filter(None, (current, current["also"])):
            by_verdict.setdefault((verdict["verdict"] or "first", verdict["before"]), []).append(model)
    rank = ["first", *WORST_FIRST]
    ordered = sorted(by_verdict, key=lambda pair: rank.index(pair[0]))
    for verdict, before in sorted(ordered, key=lambda pair: precedence(pair[1] or "0.0.0"), reverse=True):
        named = by_verdict[verdict, before]
        since = f" since {version_words(before)}" if before else ""
        yield verdict, since + ("" if len(named) == len(models) else f" with {listed(named, _MAX_NAMED)}")


def _unmeasured_runs(status: ComponentStatus, rows: Sequence[Row]) -> tuple[list[str], bool]:
    """Return sentences on runs of the newest version that do not count, and whether outputs could not be read."""
    newest = precedence(status.history.newest)
    measured = {(record.model_id, record.skill_version) for record in status.newest.values()}
    lacking = {
        (row.model_id, row.skill_version): row
        for row in rows
        if not row.complete and row.scenario is None and precedence(row.skill_version) >= newest
    }
    reasons, failed = [], False
    for (model, version), row in lacking.items():
        if (model, version) not in measured:
            failed = failed or row.usable is not None
            reason = "not finished" if row.usable is None else "could not be measured, too few outputs could be read"
            scored = f"{row.scored} of {counted(row.planned, 'call')} scored"
            reasons.append(f"{version_words(version)} with {model}: {reason} ({scored})")
    return reasons, failed


def _largest_fall(model: ModelVerdict) -> float:
    """Return the difference of the field that fell most; 0 if none fell beyond its tolerance."""
    fell = model.fell_most
    return 0.0 if fell is None else fell.difference or 0.0


def _where_line(name: str, model: ModelVerdict) -> Line:
    """Return a line with links to the field that fell most and the cases that are worse than the baseline."""
    assert model.baseline is not None  # noqa: S101  (callers choose compared models)
    against = f" with {model.model_id} since {version_words(model.baseline.skill_version)}"
    if model.verdict == "incomparable":
        return Line(f"nothing was compared{against}: {next(iter(model.reasons), 'no case is the same')}")
    parts: list[LinePart] = []
    if model.fell_most is not None:
        parts.append(Cell(fall_words(model.fell_most), link=component_address(name, model.fell_most.metric)))
    cases = model.cases.worse
    if cases:
        parts.append("; cases " if parts else "cases ")
        parts += links([(case_id, case_address(name, case_id)) for case_id in cases], _MAX_CASES)
    nothing = "nothing lost" if model.verdict in SOUND else "no field and no case fell"
    return Line(*(parts or [nothing]), against)


def links(pages: Sequence[tuple[str, str]], limit: int) -> list[LinePart]:
    """Return the first `limit` of some (name, address) pairs as links, and the number of further pages."""
    parts: list[LinePart] = []
    for name, address in pages[:limit]:
        parts += [", ", Cell(name, link=address)]
    return parts[1:] + ([f" and {len(pages) - limit} more"] if len(pages) > limit else [])


def certainty(model: ModelVerdict) -> str:
    """Format the change that decides a verdict with its evidence, and the bound for new cases if nothing was lost."""
    change = sure_words(model, is_named=False) or "no figure can be compared"
    return f"{change}; {new_cases_words(model.n_cases)}" if model.verdict in SOUND else change


def _next_line(result: ComparisonResult, model: ModelVerdict) -> Line:
    """Return the next step for a model as a line with a command or with links to pages."""
    name, version = result.skill, model.candidate.skill_version
    comparison = Cell("the comparison", link=compare_address(name, version))
    if model.has_loss_to_see:
        cases = model.worse_cases
        if model.fell_most is not None:
            path = model.fell_most.metric
            lost = Cell(f"the cases of field {path}" if path else "the cases", link=component_address(name, path))
        elif cases:
            lost = Cell(f"case {cases[0]}", link=case_address(name, cases[0]))
        else:
            return Line("look at ", comparison)
        return Line("look at ", lost, " and ", comparison)
    step = next_step(result, model, Reader(outputs={}))
    return Line(step) if "`" in step else Line(step, "; see ", comparison)


def _past_regressions(name: str, history: History) -> Iterator[Line]:
    """Yield a line for each regressed version among the newest, highest first, with the version that fixed it."""
    fell: dict[tuple[str, str], list[tuple[str, str]]] = {}
    dates: dict[str, str] = {}
    for model in history.models:
        newest = model.points[-_NEWEST:]
        for index, point in enumerate(newest):
            step = point.step
            if step is None or step.verdict != "regressed" or point.version == history.newest:
                continue
            later = newest[index + 1 :]
            fixed = next((point.version for point in later if point.step and point.step.verdict == "improved"), "")
            fell.setdefault((point.version, step.before), []).append((model.model_id, fixed))
            dates[point.version] = max(dates.get(point.version, ""), point.timestamp[:10])
    for version, before in sorted(fell, key=lambda pair: precedence(pair[0]), reverse=True):
        models = fell[version, before]
        fixes = {fixed for _, fixed in models}
        end = "no later version is better" if "" in fixes else f"fixed in {version_words(max(fixes, key=precedence))}"
        named = listed([model for model, _ in models], _MAX_NAMED)
        link = Cell(version_words(version), link=verdict_address(name, version))
        yield Line(link, f" had regressed since {version_words(before)} with {named} ({dates[version]}); {end}")
