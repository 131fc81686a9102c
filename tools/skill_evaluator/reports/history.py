"""The reports of a component's versions and models: history, accepted baselines, ranking and sample sizes."""

from collections.abc import Iterator, Sequence
from typing import Any

from skill_evaluator.display import WHOLE, amount, interval, number, pages, plain, probability, seconds, signed
from skill_evaluator.display.pages import Block, Cell, Fold, Heading, Line, Lines, Page, Section, Sheet, cells_of
from skill_evaluator.records.archive import Acceptance, precedence
from skill_evaluator.records.selection import Accepted
from skill_evaluator.reports import summary
from skill_evaluator.reports.summary import Reader
from skill_evaluator.stats import by_key, mean_or_none, rounded
from skill_evaluator.text import counted, listed, version_words
from skill_evaluator.verdicts.decide.comparability import STALE_DAYS
from skill_evaluator.verdicts.decide.results import joined_falls
from skill_evaluator.verdicts.shipping import History, ModelRanking, Point, PromptEffect, Step
from skill_evaluator.verdicts.sizing import can_show

_MAX_FLAKY = 5
_MOVED = {"regressed", "improved"}


def history_page(history: History, site: str | None = None, folders: Sequence[str] = ()) -> Page:
    """Build the page of a history. `folders`: options such as `--config DIR`, which suggested commands repeat."""
    name, newest, reader = history.skill, history.newest, Reader(folders=folders)
    title = f": {history.metric} (strict mean over all runs of a version)"
    verdicts = {point.step.verdict for model in history.models for point in model.points if point.step}
    within = {"unchanged": f": no drop beyond the tolerance ({plain(history.tolerance)})"}
    legend = [f"{mark} {name}{within.get(name, '')}" for name, mark in summary.MARKS.items() if name in verdicts]
    legend.append(f"95 % intervals, q: adjusted p-value, α {plain(history.alpha)}")
    first = f"nothing to compare with yet; {can_show(history.models[0].points[-1].n_cases)}"
    no_change = [] if verdicts & _MOVED else ["no version regressed or improved" if verdicts else first]
    newest_steps = [step for step in history.newest_steps.values() if step is not None]
    if history.unmeasured:
        following = summary.measure_step(name, reader)
    elif not newest_steps or newest == history.accepted or not history.to_ship:
        following = summary.try_step(name, reader)
    elif newest != history.to_ship:
        following = f"compare the two versions: {reader.command('compare', name)}"
    else:
        reason = f"{history.newest_verdict} against {newest_steps[0].before}"
        following = summary.accept_step(name, newest, reason, reader)
    blocks: list[Block] = [
        Lines([history.unmeasured] if history.unmeasured else [], style="yellow"),
        Heading(Cell(name, code=True, link=pages.component_address(name)), title, level=2),
        _version_sheet(history),
        Line(" · ".join(legend), style="dim"),
        Lines([*_findings(history), *no_change, *_flaky_lines(history)]),
        Line(history.advice.sentence, style="bold") if history.advice else "",
        f"next: {following}",
    ]
    return pages.page_of(name, blocks, site)


def _findings(history: History) -> Iterator[Line]:
    for model in history.models:
        name = Cell(model.model_id, code=True)
        for point in model.points:
            step = point.step
            is_open = step is not None and step.verdict == "inconclusive" and point.version == history.newest
            if step is not None and (step.verdict in _MOVED or is_open):
                style = summary.STYLES[step.verdict]
                yield Line(name, f": {_step_words(history.metric, point, step, is_open=is_open)}", style=style)
        highest = model.points[-1].step
        since = None if highest is None else highest.since_accepted
        if since is not None:
            yield Line(name, f": {summary.since_accepted_words(since)}", style=summary.STYLES.get(since.verdict, ""))
        yield from (Line(name, f": {remark}", style="yellow") for remark in model.remarks)


def _flaky_lines(history: History) -> Iterator[str]:
    for model in history.models:
        for values in model.flaky[:_MAX_FLAKY]:
            right = f"right in {', '.join(values.right)} outputs of the last runs"
            yield f"flaky with {model.model_id}: {values.path or WHOLE} of case {values.case_id}, {right}"
    if any(model.flaky for model in history.models):
        setting = f"policy.components.{history.skill}.unstable_cases"
        yield f"after a review, `{setting}` in settings.yaml lets such a case decide nothing"


def _step_words(metric: str, point: Point, step: Step, *, is_open: bool) -> str:
    change = f"{signed(step.difference)} ({interval(step.ci95, point.n_cases, signed)}, q {probability(step.q)})"
    main_reason = joined_falls(step.falls) or next(iter(step.reasons), "")
    is_shown = main_reason.startswith(tuple(f"{metric} {verb} " for verb in ("fell", "rose")))
    reason = "" if is_open or is_shown else f"; {main_reason}"
    if step.fell_most and step.fell_most not in reason:
        reason += f"; fell most: {step.fell_most}"
    mark, since = summary.MARKS[step.verdict], step.since_accepted
    alone = f" since {since.version};" if since and step.regressed_since else ""
    return f"{mark} {point.version} {step.verdict}{alone} against {step.before}: {change}{reason}"


def _version_sheet(history: History) -> Sheet:
    by_model = [{point.version: point for point in model.points} for model in history.models]
    versions = sorted(dict.fromkeys(version for points in by_model for version in points), key=precedence)
    rows = []
    for version in versions:
        first = min(points[version].timestamp for points in by_model if version in points)
        cells = [Cell(version_words(version, first) + " (accepted)" * (version == history.accepted), code=True)]
        for point in (points.get(version) for points in by_model):
            verdict = "" if point is None or point.step is None else point.step.verdict
            score = "" if point is None else f"{number(point.strict_mean)} {summary.MARKS.get(verdict, '')}".rstrip()
            cells.append(Cell(score, summary.STYLES.get(verdict, "")))
        rows.append(cells)
    names = [model.model_id for model in history.models]
    return Sheet(columns=("version", *names), rows=rows, named=frozenset(names))


def accepted_json(accepted: Accepted) -> dict[str, Any]:
    """Return the JSON value of an accepted version; `strict_means` has the score of each model by its id."""
    record = accepted.records[0]
    means = {name: mean for name, (_, mean) in _strict_means(accepted).items()}
    facts = {"skill": record.skill, "new": accepted.new, "acceptance": accepted.acceptance}
    return {**facts, "metric": record.primary_metric, "strict_means": means}


def accepted_page(accepted: Accepted) -> Page:
    """Build the page of an accepted version: its models with their strict means, and the file to commit."""
    acceptance, metric, skill = accepted.acceptance, accepted.records[0].primary_metric, accepted.records[0].skill
    rows = [cells_of([name], runs, number(mean)) for name, (runs, mean) in _strict_means(accepted).items()]
    title = f" {acceptance.version} {'is accepted' if accepted.new else 'was accepted before, for the same reason'}"
    lines = []
    if accepted.new:
        lines.append(f"commit {accepted.path}: later versions are compared with {acceptance.version} from then on")
    if accepted.above is not None:
        above = f"versions above {accepted.above} are still compared with that one"
        lines.append(f"{above}, unless its entry in {accepted.path} is removed")
    heading, reason = Heading(Cell(skill, code=True), title, level=2), f"by {acceptance.by}: {acceptance.why}"
    sheet = Sheet(columns=("model", "runs", metric), rows=rows, numbers=frozenset({"runs", metric}))
    return pages.page_of(skill, [heading, reason, sheet, Lines(lines)])


def _strict_means(accepted: Accepted) -> dict[str, tuple[int, float | None]]:
    """Return (number of runs, mean score of the runs) by model id. The mean is None if no run has a score."""
    metric = accepted.records[0].primary_metric
    means = {}
    for model_id, records in by_key((record.model_id, record) for record in accepted.records).items():
        scores = [record.accuracy[metric].strict_mean for record in records if metric in record.accuracy]
        means[model_id] = len(records), rounded(mean_or_none([score for score in scores if score is not None]))
    return means


def acceptances_page(skill: str, acceptances: Sequence[Acceptance]) -> Page:
    """Build the page of all accepted versions of a component, the newest last."""
    columns = ("version", "accepted on", "by", "models", "why")
    rows = []
    for entry in acceptances:
        models = Cell(", ".join(entry.models), code=True) if entry.models else Cell("all")
        by, reason = Cell(entry.by, code=True), Cell(entry.why, code=True)
        rows.append(cells_of([], entry.version, entry.date.isoformat(), by, models, reason))
    nothing = f"no version of {skill} was accepted; `skill-evaluator accept {skill} --reason TEXT` accepts the highest"
    return pages.page_of(skill, [Sheet(columns=columns, rows=rows, whole=frozenset(columns[:2])) if rows else nothing])


def rankings_page(rankings: Sequence[ModelRanking], folders: Sequence[str] = ()) -> Page:
    """Build the page of rankings. `folders`: options such as `--config DIR`, which suggested commands repeat."""
    sections = []
    for ranking in rankings:
        following = f"next: {_next_step(ranking, Reader(folders=folders))}"
        sections.append(Section(name=f"the models of {ranking.skill}", blocks=[*ranking_blocks(ranking), following]))
    return Page(sections)


def _next_step(ranking: ModelRanking, reader: Reader) -> str:
    names, versions = (
        [model.model_id for model in ranking.models],
        {model.run.skill_version for model in ranking.models},
    )
    names.sort(key=lambda name: name != ranking.advice.model_id)
    if ranking.unmeasured:
        return summary.measure_step(ranking.skill, reader)
    if ranking.advice.version == "":
        return summary.try_step(ranking.skill, reader)
    if ranking.advice.version not in {None, *versions}:
        return f"compare the two versions: {reader.command('compare', ranking.skill)}"
    if not names:
        return f"run the models again: {reader.command('evaluate', ranking.skill)}"
    if len(names) < 2:
        return f"list a second model in models.yaml and run it: {reader.command('evaluate', ranking.skill)}"
    return f"compare the two models: {reader.command('compare', ranking.skill, '--models', *names[1::-1])}"


def ranking_blocks(ranking: ModelRanking) -> list[Block]:
    """Return the blocks of a ranking: the models, all figures, the difference of the first two, and the advice."""
    versions = listed(list(dict.fromkeys(model.run.skill_version for model in ranking.models)), 2)
    models, cases = counted(len(ranking.models), "model"), counted(ranking.n_cases, "case")
    mark = " (accepted)" * (versions == ranking.accepted != "")
    title = f" {versions}{mark}: {ranking.metric} of {models} on the same {cases}"
    tested = f"Holm over {counted(ranking.family, 'pair')}, α {plain(ranking.alpha)}"
    frontier = " · ◆ no other model is as good and as cheap" * any(model.frontier for model in ranking.models)
    legend = [f"USD per 1,000 outputs{frontier}"]
    if ranking.family:
        legend.append(f"= not significantly different from the best ({tested}, tolerance {plain(ranking.tolerance)})")
    return [
        Lines([ranking.unmeasured] if ranking.unmeasured else [], style="yellow"),
        Heading(Cell(ranking.skill, code=True), title, level=2),
        _ranking_sheet(ranking),
        Lines([f"{name} is skipped: {reason}" for name, reason in ranking.left_out.items()], style="yellow"),
        Lines(legend if ranking.models else [], style="dim"),
        Fold("All figures of the models", [_figures_sheet(ranking)] if ranking.models else []),
        Lines(list(_lead_sentences(ranking))),
        Line(ranking.advice.sentence, style="bold" if ranking.advice.model_id is None else "bold green"),
    ]


def _lead_sentences(ranking: ModelRanking) -> Iterator[str]:
    names = [model.model_id for model in ranking.models[:2]]
    for pair in ranking.pairs:
        if [pair.higher, pair.lower] == names and pair.difference is not None:
            change = f"{pair.lower} {signed(pair.difference)} against {pair.higher}"
            field = f"; most in field {pair.fell_most}" if pair.fell_most else ""
            yield f"how sure: {summary.difference_words(change, pair.n_cases, pair.ci95, pair.q)}{field}"
    if len(names) == 1:
        yield f"how sure: {can_show(ranking.n_cases)}"


def _ranking_sheet(ranking: ModelRanking) -> Sheet:
    rows = []
    for model in ranking.models:
        score = model.run.accuracy.get(ranking.metric)
        marks = f"{' =' if model.like_best and ranking.family else '  '}{' ◆' if model.frontier else ''}"
        rows.append(
            cells_of(
                [model.model_id],
                "–" if score is None else number(score.strict_mean) + marks.rstrip(),
                None if score is None else interval(score.ci95, score.n_cases),
                amount(model.run.usd_per_1000_cases),
                model.run.skill_version,
                model.verdict
                and Cell(f"{summary.MARKS[model.verdict]} {model.verdict}", summary.STYLES.get(model.verdict, "")),
            )
        )
    columns = ("model", "score", "95 % interval", "USD / 1,000", "version", "verdict")
    return Sheet(columns=columns, rows=rows, numbers=frozenset(columns[2:4]), below=("95 % interval", "USD / 1,000"))


def _figures_sheet(ranking: ModelRanking) -> Sheet:
    runs = [model.run for model in ranking.models]
    scores = [
        {**{name: score.strict_mean for name, score in run.accuracy.items()}, **run.reproducibility} for run in runs
    ]
    metrics = dict.fromkeys(name for by_metric in scores for name in by_metric)
    rows = {name: [number(by_metric.get(name)) for by_metric in scores] for name in metrics}
    rows |= {
        "latency, median": [seconds(run.latency_p50_s) for run in runs],
        "latency, 95 % below": [seconds(run.latency_p95_s) for run in runs],
        "measured": [_age(run.age_days) for run in runs],
        "added by the prompt": [_prompt_effect(model.prompt_adds) for model in ranking.models],
    }
    names = [model.model_id for model in ranking.models]
    shown = [[Cell(name), *map(Cell, cells)] for name, cells in rows.items() if set(cells) != {"–"}]
    return Sheet(columns=("figure", *names), rows=shown, named=frozenset(names))


def _age(days: int | None) -> str:
    if days is None:
        return "–"
    return f"{counted(days, 'day')} ago{', stale' if days > STALE_DAYS else ''}" if days else "today"


def _prompt_effect(effect: PromptEffect | None) -> str:
    if effect is None or effect.difference is None or effect.ci95 is None:
        return "–"
    low, high = map(signed, effect.ci95)
    return f"{signed(effect.difference)} ({low} to {high}, adjusted p-value {probability(effect.q)})"
