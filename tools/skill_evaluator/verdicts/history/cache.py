"""The verdicts of a history and the ranking of models, kept beside the records, so that each is drawn once.

A verdict is kept under the digest of all that it follows from: the records' files, the rules and this program. So it is
never stale, the file may be deleted at any time, and a damaged file counts as empty.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from importlib.metadata import version
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from skill_evaluator.errors import LeaderboardError, StorageError
from skill_evaluator.files import FrozenModel, read_bytes, read_text, replace_text
from skill_evaluator.library.config import Settings, Waiver
from skill_evaluator.records.archive import Archive, RecordedRun
from skill_evaluator.records.record import Record
from skill_evaluator.scoring.parallel import side_by_side
from skill_evaluator.text import canonical_json, digest
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.history.baselines import AUDIT_RESULT, AUDITS
from skill_evaluator.verdicts.history.series import Steps

_FILE = ".history.json"
_MOST = 8_000_000  # characters of the file; what was not used for longest goes first
_DRAWN_BY = ("stats.py", "text.py", "records/*.py", "verdicts/**/*.py")  # of the package: what verdicts follow from
_CALCULATED_BY = ("numpy", "scipy")
KeptT = TypeVar("KeptT", bound=FrozenModel)


class KeptVerdicts:
    """What is kept of a component, and the digests that it is kept under."""

    def __init__(self, folder: Path, records: Mapping[str, str], rules: Mapping[str, Any]) -> None:
        """Read the file in a folder; `records` are digests of their files by run id, `rules` all else of a verdict."""
        self._path = folder / _FILE
        self.records = records
        self._rules = digest(canonical_json({**rules, "program": program_digest(_DRAWN_BY, _CALCULATED_BY)}))
        self._there = _read(self._path)  # JSON by its key, as it is in the file
        self._drawn: dict[str, str] = {}

    def digest_of(self, entries: Iterable[RecordedRun]) -> str:
        """Return the digest of all that the verdicts on some runs follow from."""
        return digest(canonical_json([self._rules, sorted(map(repr, entries)), dict(self.records)]))

    def of_runs(self, entries: Iterable[RecordedRun], model: type[KeptT], draw: Callable[[], KeptT]) -> KeptT:
        """Return what follows from some runs, such as their history; draw it, and keep it, where it is not there."""
        chosen = {"of": model.__name__, "entries": sorted(map(repr, entries)), "records": dict(self.records)}
        value = self._value(chosen, model, draw)
        self._write()
        return value

    def steps(self, families: Sequence[Sequence[Pair]], draw: Callable[[Sequence[Pair]], Steps]) -> list[Steps]:
        """Return the steps of the models of each version; draw those that are not there, many on all cores."""
        inputs = [{"family": [self._inputs_of(pair) for pair in pairs]} for pairs in families]
        missing = [at for at, of_family in enumerate(inputs) if self._key(of_family) not in self._there]
        steps = side_by_side(lambda at: draw(families[at]), missing, "versions")
        drawn = dict(zip(missing, steps, strict=True))

        def drawn_at(at: int) -> Steps:
            return drawn[at] if at in drawn else draw(families[at])  # what is kept may be damaged

        return [self._value(of_family, Steps, partial(drawn_at, at)) for at, of_family in enumerate(inputs)]

    def _inputs_of(self, pair: Pair) -> dict[str, Any]:
        def files(records: Iterable[Record | None]) -> list[str | None]:
            return [None if record is None else self.records.get(record.run_id) for record in records]

        return {
            "two": files((pair.baseline, pair.candidate, pair.anchor)),
            "again": [files(again) for again in (pair.baseline_again, pair.candidate_again, pair.anchor_again)],
            "look": pair.look,
            "words": [pair.absent, *pair.passed_over, repr(pair.rewording)],
        }

    def _value(self, inputs: Mapping[str, Any], model: type[KeptT], draw: Callable[[], KeptT]) -> KeptT:
        key = self._key(inputs)
        with suppress(KeyError, ValidationError):
            value = model.model_validate_json(self._there[key])
            self._there[key] = self._there.pop(key)  # the last is what was used last
            return value
        value = draw()
        self._drawn[key] = json.dumps(value.model_dump(mode="json"), ensure_ascii=False)
        return value

    def _key(self, inputs: Mapping[str, Any]) -> str:
        return digest(canonical_json({"rules": self._rules, **inputs}))

    def _write(self) -> None:
        if self._drawn:
            newest_first = reversed({**self._there, **self._drawn}.items())
            texts = [f'"{key}":{value}' for key, value in newest_first]
            sizes = accumulate(map(len, texts))
            kept = [text for text, size in zip(texts, sizes, strict=True) if size <= _MOST]
            text = '{"verdicts": {\n' + ",\n".join(reversed(kept)) + "\n}}\n"
            try:
                replace_text(self._path, text)
            except StorageError:  # of a folder that is read-only nothing is kept
                return


def kept_verdicts(
    archive: Archive, folder: Path, settings: Settings, waivers: Iterable[tuple[Waiver, bool]]
) -> KeptVerdicts:
    """Return what is kept of a component; `waivers` are all there are, and whether each is in force."""
    audits = sorted((archive.folder.parents[1] / AUDITS).glob(f"*/{AUDIT_RESULT}"))
    rules = {
        "settings": settings.model_dump(mode="json", exclude={"site"}),
        "waivers": [[waiver.model_dump(mode="json"), in_force] for waiver, in_force in waivers],
        "accepted": [acceptance.model_dump(mode="json") for acceptance in archive.accepted],
        "audits": [digest(read_bytes(path, LeaderboardError)) for path in audits],
    }
    return KeptVerdicts(folder, archive.digests(), rules)


@lru_cache
def program_digest(patterns: Sequence[str], libraries: Sequence[str] = ()) -> str:
    """Return the digest of files of the package, by their patterns, and of the versions of libraries."""
    package = Path(__file__).parents[2]
    files = sorted(path for pattern in patterns for path in package.glob(pattern))
    versions = [f"{name} {version(name)}" for name in libraries]
    return digest(canonical_json([*(digest(path.read_bytes()) for path in files), *versions]))


def _read(path: Path) -> dict[str, str]:
    """Return what is kept by its key, a line each; what is asked for is parsed then."""
    try:
        lines = read_text(path, LeaderboardError).split("\n")
    except LeaderboardError:
        return {}
    parts = (line.removesuffix(",").partition('":') for line in lines if line.startswith('"'))
    return {key[1:]: value for key, _, value in parts}
