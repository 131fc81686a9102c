"""What the runs of a month cost, held against the cap of settings.yaml before any call is made.

Runs that leave no record (audits, judges, mutants, runs under way) cost what their answers on this machine did. Runs
that lie with a vendor in batches count with the most that they may cost.
"""

import datetime
import math
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, ValidationError

from skill_evaluator.errors import ConfigError, RunError, SkillEvaluatorError
from skill_evaluator.files import FrozenModel, read_bytes
from skill_evaluator.identifiers import Label, RunId
from skill_evaluator.library.config import Price
from skill_evaluator.providers.base import LOST, Usage
from skill_evaluator.records.record import PARTIAL
from skill_evaluator.records.summaries import RowTokens
from skill_evaluator.repository import Repository
from skill_evaluator.runner.batch_journal import BatchJournal
from skill_evaluator.runner.journal import MANIFEST, RECORD, read_answers, read_manifest
from skill_evaluator.runner.prices import Priced, call_cost, dearest_cost, usage_cost
from skill_evaluator.stats import total_or_none
from skill_evaluator.text import counted

_RECORDS, _RESULTS, _PENDING = "evals/records", "evals/results", "evals/pending"
_NO_PRICE = (
    "budget.month_usd of settings.yaml cannot be kept: no price is known for '{}'; "
    "give it price: {{input, output}} in models.yaml, or leave it out with --model"
)
_WAIT = "wait for the next month, or"
_DATED = re.compile(r"(\d{6})\d\dT")  # how the id of a run begins, and so the name of its record


class Month(FrozenModel):
    """What the runs that began in a month (UTC) cost so far, and the cap on it.

    The cost of the runs in `unknown` is not told, or not in full: it is not in `spent_usd`. `lying_usd` is the most
    that runs may cost which lie with a vendor in batches.
    """

    month: Label
    cap_usd: PositiveFloat
    spent_usd: NonNegativeFloat
    runs: NonNegativeInt
    unknown: list[RunId]
    lying_usd: NonNegativeFloat = Field(default=0.0, exclude_if=lambda usd: not usd)

    @property
    def left_usd(self) -> float:
        """What may still be spent; below 0 where too much was."""
        return self.cap_usd - self.spent_usd - self.lying_usd

    @property
    def words(self) -> str:
        """What was spent of the cap, and what is not known of it, in a sentence."""
        unknown = f"; {counted(len(self.unknown), 'run')} of unknown cost not in it" if self.unknown else ""
        spent = f"${self.spent_usd:,.2f} of ${self.cap_usd:,.2f}"
        lying = f", those at a vendor in batches ${self.lying_usd:,.2f} more at most" if self.lying_usd else ""
        return f"{counted(self.runs, 'run')} of {self.month} cost {spent}{lying}{unknown}"

    def why_refused(self, costs: Mapping[str, float | None], max_cost: float | None = None) -> str | None:
        """Say why calls may not be made that cost so much at most by model, and what to do; None where they may."""
        unpriced = [model_id for model_id, cost in costs.items() if cost is None]
        if unpriced:
            return _NO_PRICE.format(unpriced[0])
        cost = total_or_none(costs.values()) or 0.0
        cost = cost if max_cost is None else min(cost, max_cost)
        if not cost or cost <= self.left_usd:
            return None
        less = f"give --max-cost {self.left_usd:.2f}, ask less, or" if self.left_usd >= 0.01 else _WAIT
        return f"{self.words}, and this may cost ${cost:,.2f} more; {less} raise budget.month_usd in settings.yaml"

    def refuse(self, costs: Mapping[str, float | None], max_cost: float | None = None) -> None:
        """Raise ConfigError where calls that cost so much at most may not be made."""
        why = self.why_refused(costs, max_cost)
        if why is not None:
            raise ConfigError(why)

    def leaves(self, prices: Mapping[str, Price | None], max_cost: float | None = None) -> float | None:
        """Return what models may cost that are asked until it is spent; raise ConfigError where that is nothing."""
        unpriced = [model_id for model_id, price in prices.items() if price is None]
        if unpriced:
            raise ConfigError(_NO_PRICE.format(unpriced[0]))
        if not any(usd for price in prices.values() for _, usd in price or ()):
            return max_cost
        if self.left_usd < 0.01:
            raise ConfigError(f"{self.words}; {_WAIT} raise budget.month_usd in settings.yaml")
        return self.left_usd if max_cost is None else min(self.left_usd, max_cost)


class _JudgedCost(BaseModel):
    cost_usd: NonNegativeFloat | None


class _Paid(BaseModel):
    """The keys that are read of a record."""

    run_id: RunId
    timestamp: Label
    cost_usd: NonNegativeFloat | None
    tops_up: RunId | None = None
    judged: _JudgedCost | None = None
    shard: str | None = None
    settings: dict[str, Any] | None
    model_id: Label = ""
    tokens: RowTokens = RowTokens(input=None, output=None)
    reasons: dict[str, int] = {}
    transport: Label = "direct"

    @property
    def whole(self) -> str:
        """The id of the run that it is a part of, or its own."""
        run_id = self.run_id.partition(PARTIAL)[0]
        return run_id if self.shard is None else run_id.removesuffix(f"-{self.shard.replace('/', 'of')}")

    @property
    def costs(self) -> list[float | None]:
        """What the calls cost, None where a batch lost some, and what a judge's did."""
        lost = [None] * bool(self.cost_usd and LOST in self.reasons)
        return [self.cost_usd, *lost, *([self.judged.cost_usd] if self.judged else [])]

    def priced(self, prices: Mapping[str, Priced]) -> "_Paid":
        """Return the same with what its tokens cost by the price of what was asked, where no cost is told."""
        if self.cost_usd is not None or self.model_id not in prices:
            return self
        counts = {"input_tokens": self.tokens.input, "output_tokens": self.tokens.output}
        usage = Usage(**counts, batch=self.transport == "batch")
        return self.model_copy(update={"cost_usd": usage_cost(prices[self.model_id][1], usage)})


class _Job(BaseModel):
    cost_upper_usd: NonNegativeFloat | None
    max_cost_usd: NonNegativeFloat | None = None


class _Lying(BaseModel):
    """The keys that are read of a pending file."""

    created: Label
    entries: list[_Job]
    judgings: list[_Job] = []

    @property
    def most_usd(self) -> float | None:
        """The most that its jobs cost."""
        return total_or_none(
            job.cost_upper_usd if job.max_cost_usd is None else min(job.max_cost_usd, job.cost_upper_usd or math.inf)
            for job in (*self.entries, *self.judgings)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Journals:
    """Where answers lie that no record tells of, beside run folders, and the prices of models by id.

    What lies in `own` is not counted: its budget counts it.
    """

    folders: Sequence[Path]
    prices: Mapping[str, Priced]
    own: Path | None = None


def month_so_far(
    cap_usd: float,
    components: Path,
    journals: Journals,
    results: Path | None = None,
    repository: Repository | None = None,
    refs: Sequence[str] = (),
) -> Month:
    """Add up this month's runs: in the work tree, among run folders, and on the branches that hold records.

    A run counts once, however far it came. Records of other tools' results were paid elsewhere and are not counted.
    """
    month = f"{datetime.datetime.now(datetime.UTC):%Y-%m}"
    texts = [*_in_work_tree(components, results, month)]
    waiting = [*_in_work_tree(components, None, month, _PENDING)]
    if repository is not None:
        folder = repository.place(components)
        texts += _on_branches(repository, refs, folder, month)
        waiting += _on_branches(repository, refs, folder, month, _PENDING)
    paid: dict[str, list[_Paid]] = {}
    unknown = {name for name, text in texts if text is None}
    for name, text in texts:
        try:
            record = None if text is None else _Paid.model_validate_json(text)
        except ValidationError:
            unknown.add(name)
            continue
        if record is not None and record.timestamp.startswith(month) and record.settings is not None:
            paid.setdefault(record.run_id.partition(PARTIAL)[0], []).append(record.priced(journals.prices))
    contained = {record.tops_up for records in paid.values() for record in records}  # their calls are in the whole runs
    contained |= {run_id for run_id, records in paid.items() if records[0].whole != run_id and records[0].whole in paid}
    furthest = {
        run_id: max((record.costs for record in records), key=_known)
        for run_id, records in paid.items()
        if run_id not in contained
    }
    answered = _by_answers(components, results, journals, month, paid.keys())
    spent = {**answered, **furthest}
    lying = {name: most for name, most in _lying(waiting, month) if name not in paid}
    unknown |= {run_id for run_id, costs in spent.items() if None in costs}
    unknown |= {run_id for run_id, most in lying.items() if most is None}
    return Month(
        month=month,
        cap_usd=cap_usd,
        spent_usd=round(sum(map(_known, spent.values())), 6),
        runs=len(spent.keys() | unknown | lying.keys()),
        unknown=sorted(unknown),
        lying_usd=round(_known(lying.values()), 6),
    )


def _lying(waiting: Iterable[tuple[str, bytes | None]], month: str) -> Iterator[tuple[str, float | None]]:
    """Yield the runs of a month that lie with a vendor, and the most that they cost."""
    for name, text in waiting:
        try:
            lying = _Lying.model_validate_json(text or b"")
        except ValidationError:
            yield name, None
        else:
            if lying.created.startswith(month):
                yield name, lying.most_usd


def _by_answers(
    components: Path, results: Path | None, journals: Journals, month: str, recorded: Container[str]
) -> dict[str, list[float | None]]:
    """Return what the answers cost that no record tells of, by run, audit, judging and set of mutants."""
    paths = {path: path.parents[1].name for path in components.glob(f"*/{_RESULTS}/mutants-*/*/{MANIFEST}")}
    for pattern, folder in ((f"*/{_RESULTS}/*/{MANIFEST}", components), (f"*/{MANIFEST}", results)):
        paths |= {path: path.parent.name for path in folder.glob(pattern)} if folder else {}
    for folder in journals.folders:
        paths |= {path: path.relative_to(folder).parts[0] for path in folder.rglob(MANIFEST)}
    costs: dict[str, list[float | None]] = {}
    own = journals.own and journals.own.resolve()
    for path, name in paths.items():
        run = path.parent
        if (run / RECORD).exists() or (own is not None and run.resolve().is_relative_to(own)):
            continue
        try:
            manifest = read_manifest(run)
            if manifest.created.startswith(month) and manifest.run_id not in recorded and not manifest.tops_up:
                priced, mine = journals.prices.get(manifest.model_id), costs.setdefault(name, [])
                for made in [*read_answers(run, lambda _: None)]:  # all or none of a damaged journal
                    if made.completion is not None:
                        mine.append(dearest_cost(*priced, made.completion) if priced else None)
                    elif priced:
                        mine.append(call_cost(*priced, made))
                mine += [None] if BatchJournal.read(run).open else []
        except RunError:
            costs.setdefault(name, []).append(None)
    return costs


def _known(costs: Iterable[float | None]) -> float:
    return sum(cost for cost in costs if cost is not None)


def _in_work_tree(
    components: Path, results: Path | None, month: str, kind: str = _RECORDS
) -> Iterator[tuple[str, bytes | None]]:
    """Yield the id and the text of each record that may be of a month; None for one that cannot be read."""
    places = [(path.stem, path) for path in components.glob(f"*/{kind}/*.json")]
    if kind == _RECORDS:
        folders = [*components.glob(f"*/{_RESULTS}/*/{RECORD}"), *(results.glob(f"*/{RECORD}") if results else [])]
        places += [(path.parent.name, path) for path in folders]
    for name, path in places:
        if _may_be_of(name, month):
            try:
                yield name, read_bytes(path)
            except SkillEvaluatorError:
                yield name, None


def _on_branches(
    repository: Repository, refs: Iterable[str], folder: str, month: str, kind: str = _RECORDS
) -> Iterator[tuple[str, bytes | None]]:
    """Yield the same of the records at some commits; a commit that is not here has none."""
    for commit in filter(None, map(repository.commit, refs)):
        blobs = {
            blob: name
            for path, blob in repository.files(commit, folder).items()
            if f"/{kind}/" in path and _may_be_of(name := Path(path).stem, month)
        }
        for blob, text in repository.contents(blobs).items():
            yield blobs[blob], text


def _may_be_of(name: str, month: str) -> bool:
    dated = _DATED.match(name)
    return dated is None or dated[1] == month.replace("-", "")
