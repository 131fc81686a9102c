"""Select the unchanged cases and checks of two records, and read the scores of their cases."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from skill_evaluator.display import WHOLE, number, value_pair
from skill_evaluator.identifiers import invocation_of
from skill_evaluator.library.scenarios import SCHEMA_ALONE
from skill_evaluator.metrics.accuracy import share_passed
from skill_evaluator.records import record as records
from skill_evaluator.records.record import ANSWERED, CHECKS_METRIC, SCORED, CaseRecord, CheckRecord, FieldCount, Record
from skill_evaluator.records.summaries import AMOUNTS, CaseAmount
from skill_evaluator.stats import by_key, mean_or_none
from skill_evaluator.text import counted, differences, listed

Kind = Literal["accuracy", "reproducibility", "field", "amount"]
CasePairs = Sequence[tuple[CaseRecord, CaseRecord]]  # baseline and candidate
Scores = tuple[float, ...]
RUN_SD = 0.1  # standard deviation of a day on the logit scale; stated, not measured
STALE_DAYS = 30  # vendors change the model behind a name, so a remark names an older baseline
_ASK_ANEW = "`evaluate` runs both versions with the model served now; `policy.served: any` ignores the difference"
AGREEMENT = ("pairwise_exact_match", "pairwise_field_f1")
SCHEMA_CHANGED, PART_CHANGED = "the schema changed", "a file or part that the schema refers to changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A baseline and a candidate to compare, with the other runs that the comparison uses.

    `baseline_again`, `candidate_again` and `anchor_again` have other runs of the same versions, oldest first. The
    scores of these runs are pooled with the scores of `baseline`, `candidate` and `anchor`. `anchor` is an older
    record, usually of the accepted version, with which the candidate is also compared.
    """

    baseline: Record | None  # None: see `absent` for the reason
    candidate: Record
    absent: str = "there is no complete record of a lower version to compare with"
    baseline_again: tuple[Record, ...] = ()
    candidate_again: tuple[Record, ...] = ()
    anchor: Record | None = None  # record of the accepted version, or else of the lowest comparable version
    anchor_again: tuple[Record, ...] = ()
    skipped_notes: tuple[str, ...] = ()  # texts that name the skipped runs
    unstable: Mapping[str, str] = field(default_factory=dict)  # scores and reason of removed unstable cases, by id
    side_by_side: bool = False  # the runs count as interleaved, although their records do not say so
    any_served: bool = False  # the served models may differ
    unproved_judge: str | None = None  # the uncalibrated judge of the checks

    @property
    def runs(self) -> tuple[Record | None, Record]:
        """The baseline and the candidate."""
        return self.baseline, self.candidate

    @property
    def is_judged_alike(self) -> bool:
        """Whether the same judge, prompt and settings decided the checks of both runs. False if no judge did."""
        before, after = (run.judged if run else None for run in self.runs)
        return bool(before and after and (before.model_id, before.digests) == (after.model_id, after.digests))

    @property
    def is_beside(self) -> bool:
        """Whether the two runs are interleaved, or count as interleaved because `side_by_side` is true."""
        return self.side_by_side or (self.baseline is not None and self.candidate.beside == self.baseline.run_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedCases:
    """The unchanged cases of two records, each as (baseline, candidate), and the differences between the records.

    `left_out` has the reason why any other case is not compared, by case id. `barriers` are the differences that
    prevent a comparison. `remarks` are the differences that do not prevent it. `outputs` has the numbers of readable
    and of planned outputs, first in the baseline, then in the candidate.
    """

    cases: tuple[tuple[CaseRecord, CaseRecord], ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    barriers: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    outputs: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0))


def mark_concurrent(pair: Pair) -> Pair:
    """Return a pair with `side_by_side` set, which says whether the runs count as interleaved.

    Runs count as interleaved if the same commands ran the baseline and the candidate, or if all runs are imported.
    """
    if pair.baseline is None:
        return pair
    sides = (pair.baseline, *pair.baseline_again), (pair.candidate, *pair.candidate_again)
    before, after = ({invocation_of(record.run_id) for record in side} for side in sides)
    elsewhere = all(record.is_from_elsewhere for side in sides for record in side)
    return replace(pair, side_by_side=elsewhere or before == after)


def common_part(baseline: Record, candidate: Record, *, any_served: bool = False) -> SharedCases:
    """Compare the cases and the settings of two records. If `any_served` is true, the served models may differ."""
    before = {case.case_id: case for case in baseline.per_case}
    after = {case.case_id: case for case in candidate.per_case}
    shared = [case_id for case_id in before if case_id in after]
    changed = [case_id for case_id in shared if not after[case_id].has_same_inputs(before[case_id])]
    left_out = {case_id: "not in the baseline" for case_id in after if case_id not in before}
    left_out |= {case_id: "removed" for case_id in before if case_id not in after}
    left_out |= dict.fromkeys(changed, "inputs or truth changed")
    for record in (baseline, candidate):
        reasons = record.not_applicable.items()
        left_out |= {case_id: f"not applicable to {record.model_id}: {why}" for case_id, why in reasons}
    cases = tuple((before[case_id], after[case_id]) for case_id in shared if case_id not in left_out)
    change = None if any_served else served_change(baseline, candidate)
    return SharedCases(
        cases=cases,
        left_out=dict(sorted(left_out.items())),
        barriers=tuple(_barriers(baseline, candidate, change)),
        remarks=tuple(_remarks(baseline, candidate, change)),
        outputs=(_count_outputs(old for old, _ in cases), _count_outputs(new for _, new in cases)),
    )


def _count_outputs(cases: Iterable[CaseRecord]) -> tuple[int, int]:
    outcomes = [outcome for case in cases for outcome in case.outcomes]
    return outcomes.count(SCORED), len(outcomes)


def served_change(baseline: Record, candidate: Record) -> records.Change | None:
    """Return "model" if different models served two runs, "date" if different releases of one model did, else None.

    `change_of` has the details. Runs of different model ids are expected to be served by different models. For such
    runs, return "model" if several models served one of the runs, else None.
    """
    if candidate.provider == "program":
        return None
    if baseline.model_id != candidate.model_id:  # two models may differ, but each run must be of one model
        return "model" if records.is_mixed(baseline.served_model) or records.is_mixed(candidate.served_model) else None
    return records.change_of(baseline.served_model, candidate.served_model, candidate.requested)


def _barriers(baseline: Record, candidate: Record, change: records.Change | None) -> Iterator[str]:
    if baseline.run_id == candidate.run_id and baseline == candidate:
        return
    if change == "model":
        yield f"another model answered: {_served(baseline, candidate)}; {_ASK_ANEW}"
    if baseline.skill != candidate.skill:
        yield f"they are of different components: '{baseline.skill}' and '{candidate.skill}'"
    if baseline.scorer_version != candidate.scorer_version:
        yield (
            f"they were scored by different rules (scorer {baseline.scorer_version} and {candidate.scorer_version}); "
            f"`skill-evaluator evaluate {candidate.skill}` runs both versions again"
        )
    without_prompt = baseline.scenario == SCHEMA_ALONE
    for name, barrier in (
        ("schema", SCHEMA_CHANGED),
        ("contract", PART_CHANGED),
        ("datasets", ""),  # `_comparator_changes` says which, which requires a walk over all fields
        ("scenario", "their scenarios differ"),
    ):
        if baseline.digests.get(name) != candidate.digests.get(name) and not (name == "scenario" and without_prompt):
            yield barrier or _comparator_changes(baseline, candidate)
    if changes := _setting_changes(baseline, candidate)[0]:
        yield changes


def _comparator_changes(baseline: Record, candidate: Record) -> str:
    before, after = ({path: field.compare for path, field in run.per_field.items()} for run in (baseline, candidate))
    changed = [path for path in before if after.get(path, before[path]) != before[path]]
    fields = listed([f"'{path or WHOLE}' as {before[path]}, then {after[path]}" for path in changed])
    reason = fields or "evals/datasets.json, or the default comparators"
    return f"fields are compared by other rules ({reason})"


def _setting_changes(baseline: Record, candidate: Record) -> tuple[str, str]:
    """Return two texts: the changed settings that prevent a comparison, and the harmless ones. Each may be ""."""
    if baseline.model_id != candidate.model_id or baseline.digests.get("settings") == candidate.digests.get("settings"):
        return "", ""
    before, after = (
        None if record.settings is None else record.settings.model_dump(mode="json", exclude={"timeout_s"})
        for record in (baseline, candidate)
    )
    changes = differences(before, after)
    descriptions = listed([f"{one.path} {' → '.join(value_pair(one.before, one.after))}" for one in changes])
    target_keys = ("base_url", "place", "region", *(("params.file",) if candidate.provider == "replay" else ()))
    is_elsewhere = bool(changes) and all(change.path in target_keys for change in changes)
    if is_elsewhere and baseline.served_model == candidate.served_model:
        return "", f"only the endpoint changed, which is not a setting of the model: {descriptions}"
    return f"the model's settings changed{': ' * bool(descriptions)}{descriptions}", ""


def _served(baseline: Record, candidate: Record) -> str:
    return ", then ".join(records.served_text(run.served_model) or "an unnamed model" for run in (baseline, candidate))


def _remarks(baseline: Record, candidate: Record, change: records.Change | None) -> Iterator[str]:
    if baseline.scenario == SCHEMA_ALONE != candidate.scenario:
        yield "the baseline was run without the prompt"
    same_model = baseline.model_id == candidate.model_id
    if not same_model:
        yield f"the models differ: {baseline.model_id} and {candidate.model_id}"
    yield from filter(None, [_setting_changes(baseline, candidate)[1]])
    drifts = list(_drifts(baseline, candidate, change)) if same_model else []
    if drifts:
        remedy = ": run `evaluate` to call both prompts in one run"
        alone = candidate.beside == baseline.run_id or candidate.skill_version == baseline.skill_version
        yield " and ".join(drifts) + ("" if alone or candidate.provider == "program" else remedy)
    if baseline.evaluator_version != candidate.evaluator_version:
        yield f"the evaluator was {baseline.evaluator_version}, then {candidate.evaluator_version} (same scorer)"
    for name, record in (("baseline", baseline), ("candidate", candidate)):
        if record.stopped:
            yield f"the {name}'s run is incomplete: {record.stopped}"
    if baseline.transport != candidate.transport:
        how = {"direct": "directly", "batch": "in batches"}
        yield f"the baseline was called {how[baseline.transport]}, the candidate {how[candidate.transport]}"
    if baseline.replicates != candidate.replicates and candidate.beside != baseline.run_id:
        size = counted(baseline.replicates, "replicate")
        yield f"the baseline has {size} per case, the candidate {candidate.replicates}"


def _drifts(baseline: Record, candidate: Record, change: records.Change | None) -> Iterator[str]:
    before, after = baseline.moment, candidate.moment
    if before is not None and after is not None and (after - before).days > STALE_DAYS:
        yield f"the baseline is {(after - before).days} days older"
    if baseline.served_model != candidate.served_model and change != "model":  # a changed model is a barrier
        yield f"the vendor served {_served(baseline, candidate)}"
    for name in ("version", "fingerprints", "concurrency"):
        was, now = (getattr(record.server, name, None) for record in (baseline, candidate))
        was, now = (listed(sorted(value)) if isinstance(value, dict) else value for value in (was, now))
        if was and now and was != now:
            yield f"the server's {name}: {was}, then {now}"
    before_rate, after_rate = baseline.cost.tokens.hit_rate or 0, candidate.cost.tokens.hit_rate or 0
    if (before_rate > 0) != (after_rate > 0):
        yield f"a prompt cache was read in one run only: {before_rate:.0%} of the input, then {after_rate:.0%}"


def strict_scores(case: CaseRecord, name: str) -> Scores:
    """Return the scores of a case's replicates by a metric, without replicates that have no score."""
    return tuple([value for value in records.strict_by_replicate(case, name) if value is not None])


def field_scores(case: CaseRecord, name: str) -> Scores:
    """Return one score per output for a field, from 0 (wrong, missing, extra or unreadable) to 1 (right).

    Records have only the number of right values of all outputs. So only the mean of the scores is exact. The scores
    are ones, at most one fraction, and zeros, in this order. If `name` is the path of a check, return its scores.
    """
    if (check := check_of(case, name)) is not None:
        return tuple(score for score in check.scores if score is not None)
    count = case.fields.get(name, FieldCount(right=0, n=0))
    scored = case.outcomes.count(SCORED)
    answers = min(count.n, scored)
    right = answers * count.right / max(1, count.n)
    whole = int(right)
    part = (right - whole,) if right > whole else ()
    unread = sum(outcome in ANSWERED for outcome in case.outcomes) - scored if scored < len(case.outcomes) else 0
    return (1.0,) * whole + part + (0.0,) * (answers - whole - len(part) + unread)


def check_of(case: CaseRecord, path: str) -> CheckRecord | None:
    """Return the check of a case that has this path. Return None if the case has no such check."""
    prefix = records.check_path("") if case.checks else ""
    return case.checks.get(path.removeprefix(prefix)) if prefix and path.startswith(prefix) else None


def cut_to(record: Record, case_ids: Container[str]) -> Record:
    """Return a copy of a record with only these cases."""
    cases = [case for case in record.per_case if case.case_id in case_ids]
    outcomes = [outcome in ANSWERED for case in cases for outcome in case.outcomes]
    return record.model_copy(update={"per_case": cases, "coverage": mean_or_none(outcomes) or 0.0})


def cut_pair(pair: Pair, case_ids: Container[str]) -> Pair:
    """Return a copy of a pair whose records have only these cases."""

    def cut(runs: Iterable[Record]) -> tuple[Record, ...]:
        return tuple(cut_to(run, case_ids) for run in runs)

    return replace(
        pair,
        baseline=pair.baseline and cut_to(pair.baseline, case_ids),
        candidate=cut_to(pair.candidate, case_ids),
        anchor=pair.anchor and cut_to(pair.anchor, case_ids),
        baseline_again=cut(pair.baseline_again),
        candidate_again=cut(pair.candidate_again),
        anchor_again=cut(pair.anchor_again),
    )


def without_unstable(pair: Pair, reasons: Mapping[str, str], metric: str) -> Pair:
    """Remove the cases in `reasons` from a pair. `unstable` gets each case's scores by `metric`, and the reason."""
    runs = [run for run in pair.runs if run is not None]
    by_run = [{case.case_id: mean_or_none(strict_scores(case, metric)) for case in run.per_case} for run in runs]
    every = {case_id for scores in by_run for case_id in scores}
    named = {
        case_id: f"{' → '.join(number(scores.get(case_id)) for scores in by_run)}, {words}"
        for case_id, words in reasons.items()
        if case_id in every
    }
    return replace(cut_pair(pair, every - named.keys()), unstable=named) if named else pair


def pooled(record: Record, again: Sequence[Record]) -> Record:
    """Return a copy of a record that also has the scores of the same cases in other runs (`again`)."""
    if not again:
        return record
    others = by_key((case.question, case) for run in again for case in run.per_case)
    cases = [_pooled_case([case, *others.get(case.question, [])]) for case in record.per_case]
    coverage = sum(run.coverage for run in (record, *again)) / (1 + len(again))
    return record.model_copy(update={"per_case": cases, "coverage": coverage})


def _pooled_case(runs: Sequence[CaseRecord]) -> CaseRecord:
    newest, counts, shares = runs[0], [run.fields for run in runs], [run.reproducibility for run in runs]
    amounts = {}
    for name in AMOUNTS:
        parts = [run.amounts[name] for run in runs if name in run.amounts]
        if n := sum(part.n for part in parts):
            amounts[name] = CaseAmount(mean=sum(part.mean * part.n for part in parts) / n, n=n)
    return newest.model_copy(
        update={
            "outcomes": [outcome for run in runs for outcome in run.outcomes],
            "replicates": {
                name: [score for run in runs for score in run.replicates.get(name, [None] * len(run.outcomes))]
                for name in newest.replicates
            },
            "fields": {
                path: FieldCount(
                    right=sum(run[path].right for run in counts if path in run),
                    n=sum(run[path].n for run in counts if path in run),
                )
                for path in dict.fromkeys(path for run in counts for path in run)
            },
            "reproducibility": {
                name: mean_or_none([share for run in shares if (share := run.get(name)) is not None])
                for name in newest.reproducibility
            },
            "checks": {
                check_id: check.model_copy(
                    update={"scores": [score for run in runs for score in run.checks[check_id].scores]}
                )
                for check_id, check in newest.checks.items()
                if all(check_id in run.checks for run in runs)
            },
            "amounts": amounts,
        }
    )


APART = "the two runs have different checks"


def with_same_checks(pair: Pair) -> Pair:
    """Return a pair with only the checks that are equal in the baseline and the candidate.

    The weight of a check is its weight in the candidate. If code decides at least one check, the checks that an
    uncalibrated judge decided get the weight 0.
    """
    if pair.baseline is None:
        return pair
    before, after = ({case.case_id: case.checks for case in run.per_case} for run in (pair.baseline, pair.candidate))
    alike = {case_id: _alike(before.get(case_id, {}), checks) for case_id, checks in after.items()}
    if pair.unproved_judge and not all(check.judged for checks in alike.values() for check in checks.values()):
        for checks in alike.values():
            checks |= {name: one.model_copy(update={"weight": 0.0}) for name, one in checks.items() if one.judged}

    def cut(runs: Sequence[Record]) -> tuple[Record, ...]:
        checked = [[(case, alike.get(case.case_id, {})) for case in run.per_case] for run in runs]
        return tuple(
            run.model_copy(update={"per_case": [_cut_case(case, checks) for case, checks in cases]})
            for run, cases in zip(runs, checked, strict=True)
            if all(_alike(case.checks, checks) == checks for case, checks in cases)
        )

    (baseline,), (candidate,) = cut((pair.baseline,)), cut((pair.candidate,))
    return replace(
        pair,
        baseline=baseline,
        candidate=candidate,
        baseline_again=cut(pair.baseline_again),
        candidate_again=cut(pair.candidate_again),
    )


def _alike(before: Mapping[str, CheckRecord], after: Mapping[str, CheckRecord]) -> dict[str, CheckRecord]:
    digests = {check_id: check.digest for check_id, check in before.items()}
    return {check_id: check for check_id, check in after.items() if digests.get(check_id) == check.digest}


def _cut_case(case: CaseRecord, wanted: Mapping[str, CheckRecord]) -> CaseRecord:
    kept_checks = {
        check_id: case.checks[check_id].model_copy(update={"weight": check.weight, "tier": check.tier})
        for check_id, check in wanted.items()
    }
    if kept_checks == case.checks:
        return case
    gone = {records.check_path(check_id) for check_id in case.checks.keys() - kept_checks}
    weighed = [check for check in kept_checks.values() if check.weight]
    by_answer = zip(*([(check.weight, score) for score in check.scores] for check in weighed), strict=True)
    shares = {CHECKS_METRIC: [share_passed(checks) for checks in by_answer]} if weighed else {}
    return case.model_copy(
        update={
            "checks": kept_checks,
            "fields": {path: count for path, count in case.fields.items() if path not in gone},
            "replicates": {name: scores for name, scores in case.replicates.items() if name != CHECKS_METRIC} | shares,
            "accuracy": {name: mean for name, mean in case.accuracy.items() if weighed or name != CHECKS_METRIC},
        }
    )


def check_changes(baseline: Record, candidate: Record) -> Iterator[str]:
    """Yield a remark on new, changed and deleted checks of the shared cases, if there are any."""
    before = {case.case_id: case for case in baseline.per_case}
    changes: dict[str, list[str]] = {}
    for case in candidate.per_case:
        was = before[case.case_id].checks if case.case_id in before else case.checks
        alike = _alike(was, case.checks)
        for check_id in (was.keys() | case.checks.keys()) - alike.keys():
            what = "gone" if check_id not in case.checks else "changed" if check_id in was else "new"
            changes.setdefault(f"{records.check_path(check_id)} ({what})", []).append(case.case_id)
    if changes:
        text = listed([f"{change} in {counted(len(ids), 'case')}" for change, ids in sorted(changes.items())])
        yield f"{APART}, which do not count here: {text}; `evaluate` runs both again"
