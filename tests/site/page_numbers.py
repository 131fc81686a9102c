"""The expected figure of every number on a page of the site, from a record, `history` or `leaderboard`.

A caption identifies a table, and a title its column. A number in a column without a source is an error: add the source
of a new table here.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from bs4 import BeautifulSoup, Tag
from skill_evaluator.stats import unseen_share

from tests.support.library import Library, read

AGREEMENT = "pairwise_exact_match"
_NUMBER = re.compile(r"(?<![\w.-])[-+−±]?\d[\d,]*(?:\.\d+)?(?![\w-]|\.\d| ?%)")
_VERSION = re.compile(r"\s*(?:Version )?(\d+\.\d+\.\d+)")
_NAMES = {
    *("Component", "Model", "Group", "Version", "Run", "Measured", "Verdict"),
    *("Field", "Array", "Reason", "Case", "truth", "of"),
}

_STANDINGS = ("stable_right", "stable_wrong", "flaky", "stable", "unscored")

Row = Mapping[str, Any]
Figure = float | int | None
Sources = Callable[[str, Row], Mapping[str, Sequence[Figure]]]


@dataclass(frozen=True)
class Shown:
    """A number on a page: where it stands, how it is written, and the figure that it must be.

    Text without a figure is a number that no source is named for; a figure without text is not shown.
    """

    where: str
    text: str
    figure: Figure

    @property
    def is_right(self) -> bool:
        """Whether the text is the figure, rounded to as many decimals as are written."""
        if self.figure is None or not self.text:
            return False
        plain = self.text.replace("−", "-").replace(",", "").lstrip("+±")
        decimals = len(plain.partition(".")[2])
        return abs(float(plain) - self.figure) <= 0.5 * 10**-decimals + 1e-9


def numbers_of(page: BeautifulSoup, sources: Sources) -> Iterator[Shown]:
    """Yield every number in the tables, cards and facts of a page with the figure that it must be."""
    for caption, cells in _rows(page):
        row = {cell["title"]: cell for cell in reversed(cells)}
        figures = sources(caption, row)
        for cell in cells:
            yield from _of_cell(cell, f"{caption} · {cells[0]['texts'][:1]} · {cell['title']}", figures)


def _rows(page: BeautifulSoup) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the rows of every table with its caption, and every card and fact as a row."""
    for table in page.main.find_all("table"):
        titles = [head.get_text() for head in table.thead.find_all("th")]
        for row in table.tbody.find_all("tr"):
            cells = zip(row.find_all(["th", "td"]), titles, strict=True)
            yield table.caption.get_text(), [_cell(cell, title) for cell, title in cells]
    for card in page.main.find_all(class_="change"):
        head = card.find(recursive=False)
        yield "card", [_cell(head, "of"), *(_cell(part, "finding") for part in card.find_all(class_="figures"))]
    for fact in page.main.select(".tile, .facts > div"):
        yield "fact", [_cell(fact, "fact")]


def _cell(part: Tag, title: str) -> dict[str, Any]:
    """Return the texts of a cell, each by itself, and the moment of its date."""
    moment = part.find("time")
    return {"title": title, "texts": list(part.stripped_strings), "time": moment["datetime"] if moment else ""}


def _of_cell(cell: Row, where: str, figures: Mapping[str, Sequence[Figure]]) -> Iterator[Shown]:
    texts = [text for part in cell["texts"] for text in _NUMBER.findall(part)]
    if cell["title"] in _NAMES and cell["title"] not in figures:
        return
    recorded = [figure for figure in figures.get(cell["title"], ()) if figure is not None]
    for text, figure in zip_longest(texts, recorded):
        yield Shown(where, text or "", figure)


class Recorded:
    """What a library has recorded, and what its commands say of it, by the names that the pages show."""

    def __init__(self, library: Library, skill: str) -> None:
        """Read the records, and ask `history` and `leaderboard`."""
        self.records = [
            read(path) for path in sorted((library.root / "components" / skill / "evals/records").iterdir())
        ]
        self.history = library.call("history", skill, "--format", "json").json
        self.ranking = library.call("leaderboard", skill, "--format", "json").json[0]
        self.steps = {
            (model["model_id"], point["version"]): point
            for model in self.history["models"]
            for point in model["points"]
        }

    def newest(self, model: str) -> Row:
        """Return the newest complete record of a model's highest version."""
        complete = [record for record in self.records if record["complete"] and record["model_id"] == model]
        return max(complete, key=lambda record: (record["skill_version"], record["timestamp"]))

    def __call__(self, caption: str, row: Row) -> Mapping[str, Sequence[Figure]]:
        """Return the figures of a row by the titles of its columns."""
        for begin, figures in _TABLES.items():
            if caption.startswith(begin):
                return figures(self, row)
        return _confusion(self, caption, row)


def _text(row: Row, title: str) -> str:
    return "".join(row[title]["texts"][:1])


def _run(record: Row) -> dict[str, Sequence[Figure]]:
    """Return what a record says of a run as a whole, by every title that this has on a page."""
    summaries = {**record["accuracy"], AGREEMENT: record["reproducibility"].get(AGREEMENT) or {"strict_mean": None}}
    primary = record["accuracy"][record["primary_metric"]]
    interval = primary["ci95"] or [None, None]
    answered = record["coverage"] * record["planned"]
    usd = None if record["cost_usd"] is None or not answered else 1000 * record["cost_usd"] / answered
    return {
        **{name: [summary["strict_mean"]] for name, summary in summaries.items()},
        "Accuracy": [primary["strict_mean"], *interval],
        "95 % interval": interval,
        "Reproducibility": [summaries[AGREEMENT]["strict_mean"]],
        "Completion": [record["coverage"]],
        "USD per 1,000": [usd],
        "Tokens per output": [record["tokens"]["output"] / answered if answered else None],
        "Median s": [record["latency_s"]["p50"]],
        "95 % s": [record["latency_s"]["p95"]],
        **_spreads(record),
    }


def _spreads(record: Row) -> dict[str, Sequence[Figure]]:
    """Return how single calls are spread, in seconds and in USD for 1,000 of them."""
    calls = record.get("calls") or {}
    return {
        f"{name[1:]} % {unit}": [scale * value]
        for key, unit, scale in (("latency_s", "s", 1), ("cost_usd", "USD", 1000))
        for name, value in (calls.get(key) or {}).items()
        if name != "p50"
    }


def _of_ranking(recorded: Recorded, row: Row) -> Mapping[str, Sequence[Figure]]:
    model = next(model for model in recorded.ranking["models"] if model["model_id"] == _text(row, "Model"))
    scores = {name: [score["strict_mean"]] for name, score in model["accuracy"].items()}
    scores[recorded.ranking["metric"]] += model["accuracy"][recorded.ranking["metric"]]["ci95"]
    return {
        **scores,
        "Place": [model["place"]],
        AGREEMENT: [model["reproducibility"][AGREEMENT]],
        "USD per 1,000": [model["usd_per_1000_cases"]],
        "Median s": [model["latency_p50_s"]],
        "Change": _change(recorded, _text(row, "Model")),
    }


def _of_overview(recorded: Recorded, row: Row) -> Mapping[str, Sequence[Figure]]:
    """Return the figures of the newest run; accuracy and reproducibility are those of the ranking."""
    name = _text(row, "Model")
    figures = {**_run(recorded.newest(name)), "Change": _change(recorded, name)}
    if any(model["model_id"] == name for model in recorded.ranking["models"]):
        ranked = _of_ranking(recorded, row)
        figures |= {"Accuracy": ranked[recorded.ranking["metric"]], "Reproducibility": ranked[AGREEMENT]}
    return figures


def _change(recorded: Recorded, model: str) -> Sequence[Figure]:
    """Return by how much a model's highest version moved, since the accepted version first if that decides."""
    points = next(one["points"] for one in recorded.history["models"] if one["model_id"] == model)
    step = points[-1]["step"]
    if step is None:
        return []
    since, figures = step["since_accepted"], [step["difference"]]
    if since and since["verdict"] != step["verdict"]:
        figures.append(since["difference"])
    return figures[::-1] if since and (step["verdict"] == "improved" or since["verdict"] == "regressed") else figures


def _of_version(recorded: Recorded, row: Row) -> Mapping[str, Sequence[Figure]]:
    """Return the figures of one run, recorded by its version, model and moment, and of its version's pooled runs."""
    key = _text(row, "Model"), _text(row, "Version")
    record = next(
        record
        for record in recorded.records
        if (record["model_id"], record["skill_version"], record["timestamp"]) == (*key, row["Measured"]["time"])
    )
    point = recorded.steps.get(key)
    pooled = [point["strict_mean"], point["runs"]] if point and point["runs"] > 1 and record["complete"] else []
    return {**_run(record), "All runs of it": pooled}


def _of_field(recorded: Recorded, row: Row) -> Mapping[str, Sequence[Figure]]:
    field = recorded.newest(_text(row, "Model"))["per_field"][_text(row, "Field")]
    counts = {name: [field[name]] for name in ("n", "right", "wrong", "missing", "extra", "stability")}
    return {**counts, "right ÷ n": [field["accuracy"]]}


def _of_map(recorded: Recorded, row: Row) -> Mapping[str, Sequence[Figure]]:
    """Return how many cases a field stands right, wrong and so on in, by the model that heads the column."""
    figures = {}
    for model in row.keys() - {"Field"}:
        profile = recorded.newest(model)["per_field"][_text(row, "Field")]["profile"] or {}
        figures[model] = [profile.get(name) or None for name in _STANDINGS]
    return figures


def _of_array(recorded: Recorded, row: Row) -> Mapping[str, Sequence[Figure]]:
    array = recorded.newest(_text(row, "Model"))["per_array"][_text(row, "Array")]
    return {
        "steady length": [array["stability"]],
        "cases that varied": [array["varied"], array["n_cases"]],
        "widest difference": [array["widest"]],
    }


def _of_items(recorded: Recorded, row: Row) -> Mapping[str, Sequence[Figure]]:
    fields = recorded.newest(_text(row, "Model"))["per_field"]
    leaves = [field for path, field in fields.items() if path.rpartition("[]")[0] == _text(row, "Array")]
    counts = {name: [sum(leaf[name] for leaf in leaves)] for name in ("right", "wrong", "missing", "extra")}
    drawn = [count or None for (count,) in counts.values()]  # the words of its bar
    return {**counts, "n": [sum(count for (count,) in counts.values())], "Outcomes": drawn}


def _of_card(recorded: Recorded, row: Row) -> Mapping[str, Sequence[Figure]]:
    """Return the difference and its interval that a verdict on one version of one model was drawn by."""
    texts = [*row["of"]["texts"], *row.get("finding", {"texts": ()})["texts"]]
    version = next(match[1] for match in map(_VERSION.match, texts) if match)
    point = next(recorded.steps[name, version] for name, _ in recorded.steps if name in texts)
    step, cases = point["step"], point["n_cases"]
    if step is None:
        return {"finding": []}
    q = [] if step["q"] is None else [max(step["q"], 0.001)]  # a smaller one is written as <0.001
    new_cases = [round(100 * unseen_share(cases)), 100] if step["verdict"] in ("improved", "unchanged") else []
    return {"finding": [step["difference"], cases, *step["ci95"], *q, *new_cases]}


def _of_fact(recorded: Recorded, row: Row) -> Mapping[str, Sequence[Figure]]:
    """Return how many models and versions there are, or how many models have a verdict."""
    name = " ".join(row["fact"]["texts"])
    models = {record["model_id"] for record in recorded.records if record["complete"]}
    if "Models" in name:
        return {"fact": [len(models)]}
    if "Measured versions" in name:
        return {"fact": [len({record["skill_version"] for record in recorded.records})]}
    if "Version" in name or "metric" in name:
        return {"fact": []}
    steps = [model["points"][-1]["step"] for model in recorded.history["models"]]
    verdicts = [_verdicts(step) for step in steps]
    return {"fact": [sum(any(verdict in name for verdict in pair) for pair in verdicts)]}


def _verdicts(step: Row | None) -> set[str]:
    """Return the verdicts on a step since the version before and since the accepted one."""
    if step is None:
        return {"first"}
    since = step["since_accepted"]
    return {step["verdict"], *([since["verdict"]] if since else [])}


def _of_cases(recorded: Recorded, row: Row) -> Mapping[str, Sequence[Figure]]:
    """Return each model's score of a case in its newest run, and in how many fields that stands how."""
    figures = {}
    for model in row.keys() - {"Case"}:
        record = recorded.newest(model)
        case = next(case for case in record["per_case"] if case["case_id"] == _text(row, "Case"))
        standings = Counter(case["profile"].values())
        score = case["accuracy"][record["primary_metric"]]["strict_mean"]
        figures[model] = [score, *(standings[name] or None for name in _STANDINGS)]
    return figures


def _confusion(recorded: Recorded, caption: str, row: Row) -> Mapping[str, Sequence[Figure]]:
    """Return the counts of a truth by the category that was answered; the caption names the field and the model."""
    for record in {record["model_id"]: recorded.newest(record["model_id"]) for record in recorded.records}.values():
        for path, field in record["per_field"].items():
            if field["confusion"] and caption.startswith(f"{path}, {record['model_id']}"):
                counts = field["confusion"][_text(row, "truth")]
                return {title: [counts.get(title, 0)] for title in row.keys() - {"truth"}}
    raise AssertionError(f"no source is named for the table '{caption}'")


def _failed_of_1000(record: Mapping[str, Any], row: Row) -> float:
    return round(1000 * record["failures"][_text(row, "Reason")] / record["planned"], 1)


_TABLES: Mapping[str, Callable[[Recorded, Row], Mapping[str, Sequence[Figure]]]] = {
    "Components beside models": _of_overview,
    "Models, the best first": _of_ranking,
    "More of each model": _of_ranking,
    "Every version of every model": _of_version,
    "Output tokens, cost and latency": _of_version,
    "The figures": lambda recorded, row: _run(recorded.newest(_text(row, "Model"))),
    "Failures": lambda recorded, row: {"Of 1,000 calls": [_failed_of_1000(recorded.newest(_text(row, "Model")), row)]},
    "Fields beside models": _of_map,
    "Values of each field": _of_field,
    "Lengths of arrays": _of_array,
    "Values in arrays": _of_items,
    "Figures of this version": lambda recorded, row: _run(
        next(one for one in recorded.records if one["run_id"] == _text(row, "Run"))
    ),
    "Cases beside models": _of_cases,
    "card": _of_card,
    "fact": _of_fact,
}
