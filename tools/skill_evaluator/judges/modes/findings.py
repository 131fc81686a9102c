"""The answers of a regression judge in both orders → what code confirms of them, and the verdict on a pair.

A finding that cannot be confirmed is kept and marked. Dropping it would let a regression ship because the judge
described it badly. What the judge says in one order only is *uncertain*, and a person decides. A regression of high
impact still blocks if the other answer does not count.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import fmean

from skill_evaluator.judges.asking.evidence import Evidence, read_evidence
from skill_evaluator.judges.asking.reading import Unscored, text_of
from skill_evaluator.judges.asking.results import JudgeRecord, Order
from skill_evaluator.judges.modes.form import broken_rules
from skill_evaluator.judges.modes.regression import (
    MOST_BASIS_WORDS,
    ORDERS,
    DimensionFinding,
    JudgedPair,
    RegressionAnswer,
    RegressionItem,
    question_id,
    read_answer,
)
from skill_evaluator.judges.modes.regression_results import (
    DECISIONS,
    FOR_PEOPLE,
    AnswerResult,
    CheckedFinding,
    ConclusionResult,
    DimensionResult,
    DimensionSummary,
    Flag,
    JudgeRegressions,
    Leg,
    Mismatch,
    PairResult,
    most_careful,
)
from skill_evaluator.judges.modes.ship_rules import (
    IMPACTS,
    NONE,
    Dimension,
    Finding,
    ShipRules,
    count_severities,
    decide,
    severity_of,
)
from skill_evaluator.judges.statistics.bounded import mean_within, rate
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.text import words

LEFT_OUT_FROM = 2
"""The fewest words of the evidence that must be in the baseline and not in the candidate for an omission."""
_ENDINGS = ("ings", "ing", "ies", "ied", "es", "ed", "is", "e", "s", "y")  # of the forms of an English word
_SHORTEST_STEM = 3
_OF_EVERY_OUTPUT = frozenset(
    words("""
        about answer answers also although and are baseline because been between both bullet bullets but candidate
        clearly contains correct could covers does each every first following form from gives good have hence here
        includes into item items just leaves less like list lists mentions misses missing more most much names never
        none only other output outputs over point points prompt reason requested required response same second
        sentence should since some states still substantive such summary text than that their them then there these
        they third this those three through under very well were what when where which while whose will with within
        without words would your
    """)
)
_STYLE = frozenset(
    words("""
        academic brevity brief briefer casual chatty choppy colloquial concise conciseness dry elegant elegance
        engaging flat flow flows flowery fluency fluent formal formality informal length lengthier lively long longer
        phrased phrasing polished prose punchy readability register short shorter smooth smoother stiff stilted style
        styled stylistic stylistically succinct terse tone verbose verbosity vivid voice wordier wording wordy worded
    """)
)
_AROUND_STYLE = frozenset(
    words("""
        a an and as at be bit but by does for feel feels has in is it its little makes of on or quite rather reads
        slightly somewhat sounds the to too use uses used writes written less more much than that this very was were
        baseline candidate answer output response text version sentence sentences word words overall in general
    """)
)


def check_answer(
    answer: RegressionAnswer | Unscored,
    item: RegressionItem,
    dimensions: Sequence[Dimension],
    rules: ShipRules,
    order: Order = 1,
    replicate: int = 0,
) -> AnswerResult:
    """Hold an answer about these dimensions against the outputs, and its conclusions against the rules.

    A conclusion is compared with what the judge was told: the rules on impact and blocking, not with what only code
    knows, such as the stakes.
    """
    if isinstance(answer, Unscored):
        return AnswerResult(order=order, replicate=replicate, unscored=answer.reason, detail=answer.detail)
    written = {finding.dimension: finding for finding in answer.per_dimension}
    findings = [_check(written[dimension.name], dimension, item) for dimension in dimensions]
    worse = {finding.dimension: finding.impact for finding in findings if finding.impact is not None}
    right: Mapping[Mismatch, object] = {
        "regression_detected": bool(worse),
        "regression_severity": severity_of(list(worse.values())),
        "ship_decision": decide(worse, dimensions, ShipRules(one_low=rules.one_low))[0],
    }
    conclusion = ConclusionResult(
        **answer.model_dump(exclude={"per_dimension"}),
        mismatches=[name for name, value in right.items() if getattr(answer, name) != value],
        basis_too_long=len(answer.decision_basis.split()) > MOST_BASIS_WORDS,
    )
    return AnswerResult(order=order, replicate=replicate, findings=findings, conclusion=conclusion)


def _check(finding: DimensionFinding, dimension: Dimension, item: RegressionItem) -> CheckedFinding:
    baseline = read_evidence(
        finding.evidence_baseline, item.baseline_output, beside=(item.shown, item.candidate_output)
    )
    candidate = read_evidence(
        finding.evidence_candidate, item.candidate_output, beside=(item.shown, item.baseline_output)
    )
    both = (baseline, candidate)
    worse = finding.verdict == "candidate_worse"
    legs = _legs(baseline, candidate, dimension, item) if worse else ()
    observations = [evidence.text for evidence in both if evidence.kind == "observation"]
    quoted = any(evidence.kind == "quote" for evidence in both)
    raised: Mapping[Flag, bool] = {
        "unsupported": worse and not legs,
        "no_evidence": finding.verdict != "same" and all(evidence.kind == "none" for evidence in both),
        "quote_not_found": any(evidence.not_found for evidence in both),
        "style_only": worse and not dimension.style and not quoted and names_only_style(observations),
    }
    return CheckedFinding(
        dimension=dimension.name,
        verdict=finding.verdict,
        impact=finding.impact if worse else None,
        baseline=baseline,
        candidate=candidate,
        legs=legs,
        flags=tuple(flag for flag, holds in raised.items() if holds),
    )


def _legs(baseline: Evidence, candidate: Evidence, dimension: Dimension, item: RegressionItem) -> tuple[Leg, ...]:
    """Return what code can confirm of a *worse*; one is enough."""
    before, after = item.baseline_output, item.candidate_output
    confirmed: Mapping[Leg, bool] = {
        "quote": "quote" in (baseline.kind, candidate.kind),
        "omission": len(left_out((baseline.text, candidate.text), item.baseline_output, item.candidate_output))
        >= LEFT_OUT_FROM,
        "form": dimension.form and bool(broken_rules(item.input, before, after)),
    }
    return tuple(leg for leg, holds in confirmed.items() if holds)


def left_out(evidence: Sequence[str], baseline: str, candidate: str) -> list[str]:
    """Return the words of the evidence that are in the baseline and in no form in the candidate.

    Words that every output has, or that speak of outputs, do not count, and two forms of a word count once. An omission
    is confirmed when there are at least LEFT_OUT_FROM words.
    """
    before, after = _forms_in(baseline), _forms_in(candidate)
    gone: list[str] = []
    counted: set[str] = set()
    for word in dict.fromkeys(word for text in evidence for word in words(text)):
        if word.isdigit() or (len(word) > _SHORTEST_STEM and word not in _OF_EVERY_OUTPUT):
            forms = _forms(word)
            if forms & before and not forms & (after | counted):
                gone.append(word)
                counted |= forms
    return gone


@lru_cache(maxsize=8)  # the same two outputs are looked into for each finding
def _forms_in(text: str) -> frozenset[str]:
    return frozenset(form for word in set(words(text)) for form in _forms(word))


def _forms(word: str) -> frozenset[str]:
    """Return a word with and without each ending; *class* and *classes*, *plan* and *planned* share a form."""
    stems = {word.removesuffix(end) for end in _ENDINGS if word.endswith(end)}
    stems |= {stem[:-1] for stem in stems if stem[-1:] == stem[-2:-1] and stem[-1:] not in "aeiou"}
    return frozenset({word, *(stem for stem in stems if len(stem) >= _SHORTEST_STEM)})


def names_only_style(evidence: Sequence[str]) -> bool:
    """Return whether observations speak of style and of nothing else.

    >>> names_only_style(["", "The wording is less formal."]), names_only_style(["Formal.", "Omits the price."])
    (True, False)
    """
    named = {word for text in evidence for word in words(text)} - _AROUND_STYLE
    return bool(named) and named <= _STYLE


def combine_orders(pair: JudgedPair, answers: Sequence[AnswerResult], rules: ShipRules) -> PairResult:
    """Return the verdict of the first two answers, the second of which had the candidate first; all are kept."""
    both = answers[:2]
    verdicts = [_combine(dimension.name, both) for dimension in pair.dimensions]
    worse = {verdict.dimension: verdict.impact for verdict in verdicts if verdict.impact is not None}
    confirmed = {one.dimension: one.impact for one in verdicts if one.impact and not FOR_PEOPLE & {*one.flags}}
    decision, reason = decide(confirmed, pair.dimensions, rules)
    unscored = [answer for answer in both if answer.unscored is not None]
    doubts = [
        *(f"uncertain: {one.dimension} ({', then '.join(map(str, one.by_order))})" for one in verdicts if one.flipped),
        *(
            f"{flag.replace('_', ' ')}: {verdict.dimension}"
            for verdict in verdicts
            for flag in verdict.flags
            if flag in FOR_PEOPLE
        ),
        *(f"unscored answer: {answer.unscored}{f' ({answer.detail})' * bool(answer.detail)}" for answer in unscored),
    ]
    if doubts and decision == "ship":
        decision, reason = "review_required", doubts.pop(0)
    judged = len(unscored) < len(both)
    known = judged and (bool(worse) or not any("candidate_worse" in verdict.by_order for verdict in verdicts))
    return PairResult(
        id=pair.id,
        stratum=pair.item.stratum,
        ship_decision=decision if judged else None,
        reasons=[reason, *doubts],
        regression_detected=bool(worse) if known else None,
        regression_severity=severity_of(list(worse.values())) if known else None,
        dimensions=verdicts,
        answers=list(answers),
    )


def _combine(name: str, answers: Sequence[AnswerResult]) -> DimensionResult:
    by_order = [answer.finding(name) for answer in answers]
    findings = [finding for finding in by_order if finding is not None]
    worse = [finding for finding in findings if finding.impact is not None]
    sound = [finding for finding in worse if not FOR_PEOPLE & {*finding.flags}]
    agreed = len(findings) == len(answers) and len({finding.verdict for finding in findings}) == 1
    told = agreed or (len(findings) == 1 and any(finding.impact == "high" for finding in sound))
    impacts = [finding.impact for finding in worse if finding.impact is not None]
    legs = list(dict.fromkeys(leg for finding in findings for leg in finding.legs))
    flags = dict.fromkeys(flag for finding in findings for flag in finding.flags)
    if legs:
        flags.pop("unsupported", None)  # one leg is enough, and one answer may give it
    if sound:
        flags.pop("style_only", None)
    verdict = findings[0].verdict if told else "uncertain"
    return DimensionResult(
        dimension=name,
        verdict=verdict,
        impact=max(impacts, key=IMPACTS.index) if told and impacts else None,
        by_order=[None if finding is None else finding.verdict for finding in by_order],
        supported="unsupported" not in flags if verdict == "candidate_worse" else None,
        legs=legs,
        flags=list(flags),
    )


_STANDING: Mapping[Finding, int] = {"candidate_worse": -1, "same": 0, "candidate_better": 1}


def reduce_regressions(
    pairs: Sequence[JudgedPair],
    answers: Mapping[Call, Replicate],
    replicates: int,
    rules: ShipRules,
    judge: JudgeRecord,
    *,
    declared_strong: bool,
) -> JudgeRegressions:
    """Return what a judge found. The first replicate of each order decides; the others show how well it repeats."""
    results = [
        combine_orders(
            pair,
            [
                _read(pair, answers.get(Call(question_id(pair.id, order), replicate)), rules, order, replicate)
                for replicate in range(replicates)
                for order in ORDERS
            ],
            rules,
        )
        for pair in pairs
    ]
    given = [answer for result in results for answer in result.answers]
    decisions = [result.ship_decision for result in results]
    compared = [result for result in results if result.compared]  # else half an answer counts as less
    decided = [result.ship_decision for result in compared]
    blocking: dict[str, bool] = {}
    for dimension in (dimension for pair in pairs for dimension in pair.dimensions):
        blocking[dimension.name] = blocking.get(dimension.name, False) or dimension.blocking
    return JudgeRegressions(
        judge=judge,
        declared_strong=declared_strong,
        ship_decision=most_careful(decisions),
        decisions={name: rate(decided.count(name), len(decided)) for name in DECISIONS},
        undecided=decisions.count(None),
        dimensions=[_summary(name, blocks, results) for name, blocks in blocking.items()],
        flips=rate(sum(result.flipped > 0 for result in compared), len(compared)),
        lean=mean_within([_lean(result) for result in compared], -1.0, 1.0),
        repeats=mean_within([share for result in results if (share := _repeats(result)) is not None]),
        answers=len(given),
        unscored=Counter(answer.unscored for answer in given if answer.unscored is not None),
        mismatches=Counter(name for answer in given if answer.conclusion for name in answer.conclusion.mismatches),
        severity=count_severities(result.regression_severity or NONE for result in compared),
        pairs=results,
    )


def _read(pair: JudgedPair, made: Replicate | None, rules: ShipRules, order: Order, replicate: int) -> AnswerResult:
    text, item = text_of(made), pair.item
    shown = (item.shown, item.baseline_output, item.candidate_output)
    answer = text if isinstance(text, Unscored) else read_answer(text, pair.dimensions, shown)
    return check_answer(answer, item, pair.dimensions, rules, order, replicate)


def _lean(result: PairResult) -> float:
    """Return how much better the candidate comes off where it stands first, from -1 to 1; the mean over dimensions."""
    by_order = [dimension.by_order for dimension in result.dimensions]
    return fmean((_STANDING[second] - _STANDING[first]) / 2 for first, second in by_order if first and second)


def _repeats(result: PairResult) -> float | None:
    """Return in what share of its further replicates a pair's verdicts are those of the first; None without any."""
    same = []
    for order in ORDERS:
        first, *further = (
            None if one.unscored else {finding.dimension: finding.verdict for finding in one.findings}
            for one in result.answers
            if one.order == order
        )
        same += [other == first for other in further if None not in (first, other)]
    return sum(same) / len(same) if same else None


def _summary(name: str, blocking: bool, results: Sequence[PairResult]) -> DimensionSummary:
    every = (one for result in results for one in result.dimensions if one.dimension == name)
    verdicts = [one for one in every if None not in one.by_order]
    worse = [one for one in verdicts if one.verdict == "candidate_worse"]
    counts = Counter(one.verdict for one in verdicts)
    return DimensionSummary(
        dimension=name,
        blocking=blocking,
        better=counts["candidate_better"],
        same=counts["same"],
        uncertain=counts["uncertain"],
        worse=rate(len(worse), len(verdicts)),
        impacts={impact: sum(one.impact == impact for one in worse) for impact in IMPACTS},
        unsupported=sum("unsupported" in one.flags for one in worse),
        style_only=sum("style_only" in one.flags for one in worse),
        flips=rate(sum(one.flipped for one in verdicts), len(verdicts)),
    )
