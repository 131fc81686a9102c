"""What the runs of a month cost, by their records, held against the cap of settings.yaml before any call is made.

Of each record a few keys are read. Runs that are under way have none yet, and are not seen.
"""

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, NonNegativeFloat, NonNegativeInt, PositiveFloat, ValidationError

from skill_evaluator.errors import ConfigError, SkillEvaluatorError
from skill_evaluator.files import FrozenModel, read_bytes
from skill_evaluator.identifiers import Label, RunId
from skill_evaluator.records.record import PARTIAL
from skill_evaluator.repository import Repository
from skill_evaluator.runner.journal import RECORD
from skill_evaluator.stats import total_or_none
from skill_evaluator.text import counted

_RECORDS, _RESULTS = "evals/records", "evals/results"
_DATED = re.compile(r"(\d{6})\d\dT")  # how the id of a run begins, and so the name of its record


class Month(FrozenModel):
    """What the runs that began in a month (UTC) cost so far, and the cap on it.

    The cost of the runs in `unknown` is not said by their records, or not in full: it is not in `spent_usd`.
    """

    month: Label
    cap_usd: PositiveFloat
    spent_usd: NonNegativeFloat
    runs: NonNegativeInt
    unknown: list[RunId]

    @property
    def words(self) -> str:
        """What was spent of the cap, and what is not known of it, in a sentence."""
        unknown = f"; {counted(len(self.unknown), 'run')} of unknown cost not in it" if self.unknown else ""
        spent = f"${self.spent_usd:,.2f} of ${self.cap_usd:,.2f}"
        return f"{counted(self.runs, 'run')} of {self.month} cost {spent}{unknown}"

    def why_refused(self, costs: Mapping[str, float | None], max_cost: float | None = None) -> str | None:
        """Say why calls may not be made that cost so much at most by model, and what to do; None where they may."""
        unpriced = [model_id for model_id, cost in costs.items() if cost is None]
        if unpriced:
            return (
                f"budget.month_usd of settings.yaml cannot be kept: no price is known for '{unpriced[0]}'; "
                "give it price: {input, output} in models.yaml, or leave it out with --model"
            )
        cost = total_or_none(costs.values()) or 0.0
        cost = cost if max_cost is None else min(cost, max_cost)
        left = self.cap_usd - self.spent_usd
        if not cost or cost <= left:
            return None
        less = f"give --max-cost {left:.2f}, ask less, or" if left >= 0.01 else "wait for the next month, or"
        return f"{self.words}, and this may cost ${cost:,.2f} more; {less} raise budget.month_usd in settings.yaml"

    def refuse(self, costs: Mapping[str, float | None], max_cost: float | None = None) -> None:
        """Raise ConfigError where calls that cost so much at most may not be made."""
        why = self.why_refused(costs, max_cost)
        if why is not None:
            raise ConfigError(why)


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

    @property
    def whole(self) -> str:
        """The id of the run that it is a part of, or its own."""
        run_id = self.run_id.partition(PARTIAL)[0]
        return run_id if self.shard is None else run_id.removesuffix(f"-{self.shard.replace('/', 'of')}")

    @property
    def costs(self) -> list[float | None]:
        """What the calls cost, and what a judge's did."""
        return [self.cost_usd, *([self.judged.cost_usd] if self.judged else [])]


def month_so_far(
    cap_usd: float,
    components: Path,
    results: Path | None = None,
    repository: Repository | None = None,
    refs: Iterable[str] = (),
) -> Month:
    """Add up this month's runs: in the work tree, among run folders, and on the branches that hold records.

    A run counts once, however far it came. Records of other tools' results were paid elsewhere and are not counted.
    """
    month = f"{datetime.datetime.now(datetime.UTC):%Y-%m}"
    texts = [*_in_work_tree(components, results, month)]
    if repository is not None:
        texts += _on_branches(repository, refs, repository.place(components), month)
    paid: dict[str, list[_Paid]] = {}
    unknown = {name for name, text in texts if text is None}
    for name, text in texts:
        try:
            record = None if text is None else _Paid.model_validate_json(text)
        except ValidationError:
            unknown.add(name)
            continue
        if record is not None and record.timestamp.startswith(month) and record.settings is not None:
            paid.setdefault(record.run_id.partition(PARTIAL)[0], []).append(record)
    contained = {record.tops_up for records in paid.values() for record in records}  # their calls are in the whole runs
    contained |= {run_id for run_id, records in paid.items() if records[0].whole != run_id and records[0].whole in paid}
    furthest = {
        run_id: max((record.costs for record in records), key=_known)
        for run_id, records in paid.items()
        if run_id not in contained
    }
    unknown |= {run_id for run_id, costs in furthest.items() if None in costs}
    return Month(
        month=month,
        cap_usd=cap_usd,
        spent_usd=round(sum(map(_known, furthest.values())), 6),
        runs=len(furthest.keys() | unknown),
        unknown=sorted(unknown),
    )


def _known(costs: Iterable[float | None]) -> float:
    return sum(cost for cost in costs if cost is not None)


def _in_work_tree(components: Path, results: Path | None, month: str) -> Iterator[tuple[str, bytes | None]]:
    """Yield the id and the text of each record that may be of a month; None for one that cannot be read."""
    places = [(path.stem, path) for path in components.glob(f"*/{_RECORDS}/*.json")]
    folders = [*components.glob(f"*/{_RESULTS}/*/{RECORD}"), *(results.glob(f"*/{RECORD}") if results else [])]
    places += [(path.parent.name, path) for path in folders]
    for name, path in places:
        if _may_be_of(name, month):
            try:
                yield name, read_bytes(path)
            except SkillEvaluatorError:
                yield name, None


def _on_branches(
    repository: Repository, refs: Iterable[str], folder: str, month: str
) -> Iterator[tuple[str, bytes | None]]:
    """Yield the same of the records at some commits; a commit that is not here has none."""
    for commit in filter(None, map(repository.commit, refs)):
        blobs = {
            blob: name
            for path, blob in repository.files(commit, folder).items()
            if f"/{_RECORDS}/" in path and _may_be_of(name := Path(path).stem, month)
        }
        for blob, text in repository.contents(blobs).items():
            yield blobs[blob], text


def _may_be_of(name: str, month: str) -> bool:
    dated = _DATED.match(name)
    return dated is None or dated[1] == month.replace("-", "")
