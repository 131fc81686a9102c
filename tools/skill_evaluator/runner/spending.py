"""The cap on a month: what its runs cost so far, held before any call is made.

A run costs what its record says. What has no record (an audit, a judging, mutants, a run that was killed) costs what
its answers on this machine do, and a run that lies with a vendor in batches the most that it may.
"""

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, Field, NonNegativeInt, PositiveFloat, ValidationError

from skill_evaluator.errors import ConfigError, RunError, SkillEvaluatorError
from skill_evaluator.files import FrozenModel, read_bytes
from skill_evaluator.identifiers import Label, RunId, Usd
from skill_evaluator.library.config import Price, Settings, load_models
from skill_evaluator.providers import kinds_of
from skill_evaluator.providers.base import LOST, Usage
from skill_evaluator.records.record import PARTIAL
from skill_evaluator.records.summaries import RowTokens, TakenAnswers
from skill_evaluator.repository import Repository
from skill_evaluator.runner.journal import MANIFEST, RECORD, read_answers, read_manifest
from skill_evaluator.runner.prices import Priced, call_cost, dearest_cost, price_of, usage_cost
from skill_evaluator.runner.schedule import Replicate
from skill_evaluator.stats import total_or_none
from skill_evaluator.text import counted

_RECORDS, _RESULTS, _PENDING = "evals/records", "evals/results", "evals/pending"
_NO_PRICE = (
    "budget.month_usd of settings.yaml cannot be kept: no price is known for '{}'; "
    "give it price: {{input, output}} in models.yaml, or leave it out"
)
_WAIT = "wait for the next month, or"
_DATED = re.compile(r"(\d{6})\d\dT")  # how the id of a run begins, and so the name of its record
_SHARD = re.compile(r"-\d+of\d+$")  # how the id of a run in shards ends


class Month(FrozenModel):
    """What the runs that began in a month (UTC) cost so far, and the cap on it.

    The cost of the runs in `unknown` is not told, or not in full: it is not in `spent_usd`. `lying_usd` is the most
    that the runs may cost which lie with a vendor in batches.
    """

    month: Label
    cap_usd: PositiveFloat
    spent_usd: Usd
    runs: NonNegativeInt
    unknown: list[RunId]
    lying_usd: Usd = Field(default=0.0, exclude_if=lambda usd: not usd)

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

    def most_usd(self, prices: Mapping[str, Price | None]) -> float | None:
        """Return what calls of these models (prices by id) may cost; None: they are free, whatever the cap.

        Raise ConfigError where nothing is left, or the cap cannot be kept since a model has no price.
        """
        unpriced = [model_id for model_id, price in prices.items() if price is None]
        if unpriced:
            raise ConfigError(_NO_PRICE.format(unpriced[0]))
        if not any(usd for price in prices.values() for _, usd in price or ()):
            return None
        if self.left_usd < 0.01:
            raise ConfigError(f"{self.words}; {_WAIT} raise budget.month_usd in settings.yaml")
        return self.left_usd

    def refuse(self, costs: Mapping[str, float | None], max_cost: float | None = None) -> None:
        """Raise ConfigError where calls that cost so much at most may not be made."""
        why = self.why_refused(costs, max_cost)
        if why is not None:
            raise ConfigError(why)


class _Judged(BaseModel, defer_build=True):
    cost_usd: Usd | None


class _Paid(BaseModel, defer_build=True):
    """The keys that are read of a record; a record without settings is from a different tool and was paid elsewhere."""

    run_id: RunId
    timestamp: Label
    cost_usd: Usd | None
    settings: dict[str, object] | None
    model_id: Label = ""
    tokens: RowTokens = RowTokens(input=None, output=None)
    transport: Label = "direct"
    judged: _Judged | None = None
    taken: TakenAnswers | None = None
    reasons: dict[str, int] = {}

    def cost_by(self, prices: Mapping[str, Priced]) -> float | None:
        """Return the cost with the judge's; where it is not told, what the tokens cost by the model's price."""
        own = self.cost_usd
        if own is None and self.model_id in prices:
            counts = {"input_tokens": self.tokens.input, "output_tokens": self.tokens.output}
            own = usage_cost(prices[self.model_id][1], Usage(**counts, batch=self.transport == "batch"))
        before = -(self.taken.cost_usd or 0.0) if self.taken else 0.0
        return total_or_none((own, before, self.judged.cost_usd if self.judged else 0.0))


class _Job(BaseModel, defer_build=True):
    cost_upper_usd: Usd | None
    max_cost_usd: Usd | None = None

    @property
    def most_usd(self) -> float | None:
        """The most that its calls cost."""
        costs = [cost for cost in (self.cost_upper_usd, self.max_cost_usd) if cost is not None]
        return min(costs, default=None)


class _Lying(BaseModel, defer_build=True):
    """The keys that are read of a pending file."""

    created: Label
    entries: list[_Job]
    judgings: list[_Job] = []


def month_of(
    settings: Settings,
    config: Path,
    components: Path,
    *,
    results: Path | None = None,
    own: Path | None = None,
    repository: Repository | None = None,
    refs: Sequence[str] = (),
) -> Month | None:
    """Add up the month's runs in the work tree and on the branches `refs`, each once; None without a cap on it.

    Answers in the folder `own` are left out: the budget of whoever asks there counts them.
    """
    cap = settings.budget.month_usd
    if cap is None:
        return None
    from skill_evaluator.runner.batch_journal import BatchJournal

    month = f"{datetime.datetime.now(datetime.UTC):%Y-%m}"
    models = load_models(config, settings.limits)
    kinds = kinds_of(models, str(config / "models.yaml"))
    prices = {model.id: (model, price_of(model, kinds[model.provider])) for model in models}
    places = (month, components, repository, refs)
    costs: dict[str, list[float | None]] = {}
    unknown: set[str] = set()
    for name, text in (*_texts(_RECORDS, *places), *_kept_records(month, components, results)):
        try:
            paid = _Paid.model_validate_json(text)
        except ValidationError:
            costs.setdefault(name, []).append(None)
        else:
            if paid.settings is not None and paid.timestamp.startswith(month):
                run_id = paid.run_id.partition(PARTIAL)[0]
                costs.setdefault(run_id, []).append(paid.cost_by(prices))
                unknown |= {run_id} if LOST in paid.reasons else set()
    # a record may be there several times, and tell how far a run had come; a run in shards may be joined
    spent = {
        run_id: max(told, key=lambda cost: -1 if cost is None else cost)
        for run_id, told in costs.items()
        if (_SHARD.sub("", run_id) == run_id or _SHARD.sub("", run_id) not in costs)
    }
    lying = {name: most for name, most in _lying(_texts(_PENDING, *places), month) if name not in costs}
    unknown = (unknown & spent.keys()) | {run_id for run_id, cost in {**spent, **lying}.items() if cost is None}
    for name, folder in _unrecorded(components, results, own):
        try:
            manifest = read_manifest(folder)
            if {manifest.run_id, manifest.judging} & costs.keys() or not manifest.created.startswith(month):
                continue
            priced = prices.get(manifest.model_id)
            made = [_cost_of(made, priced) for made in read_answers(folder, lambda _: None)]
            made += [None] if BatchJournal.read(folder).open else []
            made += [-(manifest.taken.cost_usd or 0.0)] if manifest.taken else []
        except RunError:
            made = [None]
        spent[name] = (spent.get(name) or 0.0) + sum(cost or 0.0 for cost in made)
        unknown |= {name} if None in made else set()
    return Month(
        month=month,
        cap_usd=cap,
        spent_usd=round(sum(cost or 0.0 for cost in spent.values()), 6),
        runs=len(spent.keys() | lying.keys()),
        unknown=sorted(unknown),
        lying_usd=round(sum(most or 0.0 for most in lying.values()), 6),
    )


def _texts(
    kind: str, month: str, components: Path, repository: Repository | None, refs: Sequence[str]
) -> Iterator[tuple[str, bytes]]:
    """Yield name and text of each file of a kind that may be of a month, in the work tree and on branches."""
    for path in components.glob(f"*/{kind}/*.json"):
        if _may_be_of(path.stem, month):
            yield path.stem, _bytes_of(path)
    if repository is None:
        return
    folder = repository.place(components)
    for commit in filter(None, map(repository.commit, refs)):
        blobs = {
            blob: name
            for path, blob in repository.files(commit, folder).items()
            if f"/{kind}/" in path and _may_be_of(name := Path(path).stem, month)
        }
        yield from ((blobs[blob], text) for blob, text in repository.contents(blobs).items())


def _kept_records(month: str, components: Path, results: Path | None) -> Iterator[tuple[str, bytes]]:
    """Yield the same of the records in run folders."""
    for path in (*components.glob(f"*/{_RESULTS}/*/{RECORD}"), *(results.glob(f"*/{RECORD}") if results else ())):
        if _may_be_of(path.parent.name, month):
            yield path.parent.name, _bytes_of(path)


def _lying(pending: Iterable[tuple[str, bytes]], month: str) -> Iterator[tuple[str, float | None]]:
    """Yield the runs of a month that lie with a vendor, and the most that they cost."""
    for name, text in pending:
        try:
            plan = _Lying.model_validate_json(text)
        except ValidationError:
            yield name, None
        else:
            if plan.created.startswith(month):
                yield name, total_or_none(job.most_usd for job in (*plan.entries, *plan.judgings))


def _unrecorded(components: Path, results: Path | None, own: Path | None) -> Iterator[tuple[str, Path]]:
    """Yield each folder of answers without a record, by the run, audit, judging or set of mutants that it is of."""
    folders = [*components.glob(f"*/{_RESULTS}"), *(components.parent / name for name in ("audits", "judgements"))]
    for root in {*folders, *([results] if results else [])}:
        for path in root.rglob(MANIFEST):
            folder = path.parent
            if not (folder / RECORD).exists() and (own is None or not folder.resolve().is_relative_to(own.resolve())):
                yield folder.relative_to(root).parts[0], folder


def _cost_of(made: Replicate, priced: Priced | None) -> float | None:
    if priced is None:
        return None
    return call_cost(*priced, made) if made.completion is None else dearest_cost(*priced, made.completion)


def _bytes_of(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except SkillEvaluatorError:
        return b""


def _may_be_of(name: str, month: str) -> bool:
    dated = _DATED.match(name)
    return dated is None or dated[1] == month.replace("-", "")
