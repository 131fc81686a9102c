"""What other programs import: the same scores as a run's, rows that name every leaf, and errors that say the place."""

import copy
import dataclasses
import datetime
import inspect
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import skill_evaluator
from hypothesis import example, given
from hypothesis import strategies as st
from skill_evaluator import (
    NO_TRUTH,
    LeafRow,
    Library,
    NotJsonError,
    OutputScorer,
    SkillEvaluatorError,
    api,
    score_output,
    score_text,
)
from skill_evaluator.api.auditing import Audits
from skill_evaluator.api.judging import Judges
from skill_evaluator.library.components import load_component
from skill_evaluator.metrics import DEFAULT_METRICS, METRICS
from skill_evaluator.metrics.accuracy import Comparison
from skill_evaluator.scoring import scores
from skill_evaluator.site.build import SiteBuild

from tests.support.json_values import json_values, quick

ROOT = Path(__file__).parents[1]
SCHEMA = {
    "type": "object",
    "properties": {
        "shop": {"type": "string"},
        "note": {"type": "string"},
        "lines": {
            "type": "array",
            "items": {"type": "object", "properties": {"code": {"type": "string"}, "price": {"type": "number"}}},
        },
    },
    "required": ["shop"],
}
FIELDS = {"lines": {"align": "key", "key": ["code"]}, "note": {"compare": "text"}}
TRUTH = {"shop": "A", "note": "as agreed", "lines": [{"code": "x", "price": 1.5}, {"code": "y", "price": 2}]}
OUTPUT = {"shop": "A", "note": "so agreed", "lines": [{"code": "y", "price": 3}, {"code": "z"}]}


def row(path: str, truth_at: Any, output_at: Any, truth: Any, output: Any, verdict: str, **more: Any) -> LeafRow:
    how = {"compare": "string", "weight": 1.0, **more}
    return LeafRow(
        path=path, truth_at=truth_at, output_at=output_at, truth=truth, output=output, verdict=verdict, **how
    )


def test_every_value_has_a_row_with_path_and_verdict() -> None:
    found = score_output(TRUTH, OUTPUT, SCHEMA, FIELDS)
    assert set(found.rows) == {
        row("shop", ("shop",), ("shop",), "A", "A", "right"),
        row("note", ("note",), ("note",), "as agreed", "so agreed", "wrong", compare="text", weight=0.0),
        row("lines[].code", ("lines", 0, "code"), None, "x", None, "missing"),
        row("lines[].price", ("lines", 0, "price"), None, 1.5, None, "missing", compare="number"),
        row("lines[].code", ("lines", 1, "code"), ("lines", 0, "code"), "y", "y", "right"),
        row("lines[].price", ("lines", 1, "price"), ("lines", 0, "price"), 2, 3, "wrong", compare="number"),
        row("lines[].code", None, ("lines", 1, "code"), None, "z", "extra"),
    }
    assert len(found.rows) == 7
    # 2 of 5 leaves of the truth and of 4 of the output are right; items: y of x, y, z
    assert found.scores == {"schema_valid": 1.0, "exact_match": 0.0, "field_level_f1": 4 / 9, "jaccard": 1 / 3} | {
        name: found.scores[name]
        for name in set(DEFAULT_METRICS) - {"schema_valid", "exact_match", "field_level_f1", "jaccard"}
    }


def test_mistakes_are_printed_as_sentences() -> None:
    found = score_output(TRUTH, OUTPUT, SCHEMA, FIELDS)
    assert sorted(map(str, found.mistakes)) == [
        'extra at lines[1].code: "z" is not expected (compared as string)',
        'missing at lines[0].code: "x" is expected (compared as string)',
        "missing at lines[0].price: 1.5 is expected (compared as number)",
        "wrong at lines[1].price, in the output lines[0].price: 2 is expected, not 3 (compared as number)",
    ]


@pytest.mark.parametrize("name", sorted(path.parent.name for path in ROOT.glob("components/*/prompt.md")))
def test_scorer_gives_the_scores_of_a_run(name: str) -> None:
    component = load_component(ROOT / "components", name)
    declared = json.loads((component.files.folder / "evals" / "datasets.json").read_text())["datasets"][0]
    scorer = OutputScorer(component.contract.schema, declared.get("fields"), component.scoring.metrics)
    truths = [json.loads(path.read_text()) for path in sorted(ROOT.glob(f"fixtures/{name}/cases/*/ground_truth.json"))]
    for truth, output in zip(truths, truths[1:] + truths[:1], strict=True):
        comparison = Comparison(truth, output, component.scoring.plan, component.contract.conforms(output))
        expected = {metric: component.scoring.metrics[metric].score(comparison) for metric in component.scoring.metrics}
        assert scorer.score(truth, output).scores == expected
        assert all(value in (None, 1.0) for value in scorer.score(truth, truth).scores.values())


@quick
@given(truth=json_values, output=json_values)
def test_scoring_any_json_values_returns_json(truth: Any, output: Any) -> None:
    before = copy.deepcopy((truth, output))
    found = score_output(truth, output)
    assert (truth, output) == before
    assert json.loads(json.dumps(found.as_dict())) == found.as_dict()
    assert score_output(truth, copy.deepcopy(truth)).mistakes == ()


def test_as_dict_holds_every_member_of_the_result() -> None:
    found = score_text(TRUTH, "{}", SCHEMA, FIELDS, ["schema_valid", "exact_match"])
    plain = found.as_dict()
    assert plain.keys() == {"scores", "rows", "valid", "schema_errors", "found", "problem"}
    assert plain["scores"] == {"schema_valid": 0.0, "exact_match": 0.0}
    assert plain["schema_errors"] == ['/: "shop" is a required property']
    assert {
        "path": "lines[].price",
        "truth_at": ["lines", 1, "price"],
        "output_at": None,
        "truth": 2,
        "output": None,
        "compare": "number",
        "weight": 1.0,
        "verdict": "missing",
    } in plain["rows"]


def test_output_without_a_truth_has_validity_only() -> None:
    found = score_output(NO_TRUTH, {"shop": 5}, SCHEMA)
    assert found.scores["schema_valid"] == 0.0
    assert {value for name, value in found.scores.items() if METRICS[name].needs_truth} == {None}
    assert (found.rows, found.valid) == ((), False)
    assert found.schema_errors == ('/shop: 5 is not of type "string"',)
    assert copy.deepcopy(NO_TRUTH) is NO_TRUTH


@quick
@given(truths=st.lists(json_values, min_size=2, max_size=4), output=json_values)
@example(truths=[None, [None, [None, None, []]]], output=[[None, None, False]])  # null in items of unequal length
def test_a_scorer_that_is_kept_scores_as_a_new_one(truths: list[Any], output: Any) -> None:
    kept = OutputScorer()
    for truth in (*truths, *truths):  # those that were prepared before too
        assert kept.score(truth, output) == OutputScorer().score(truth, output)


@pytest.mark.parametrize(("truth", "f1"), [({"a": 1}, 1.0), ({"a": 1.0}, 1.0), ({"a": True}, 0.0), ({"a": "1"}, 0.0)])
def test_scorer_distinguishes_equal_python_values(truth: Any, f1: float) -> None:
    scorer = OutputScorer()
    scorer.score({"a": 1}, {"a": 1})
    assert scorer.score(truth, {"a": 1}).scores["field_level_f1"] == f1


def test_arguments_may_be_changed_between_two_calls() -> None:
    truth, schema = {"a": [1]}, {"type": "object", "properties": {"a": {}}}
    fields = {"a": {"compare": "exact"}}
    first = score_output(truth, {"a": [1]}, schema, fields, ["exact_match"])
    first.rows[0].truth.append(2)  # an array that is compared as a whole
    assert score_output({"a": [1]}, {"a": [1]}, schema, fields, ["exact_match"]).scores["exact_match"] == 1.0
    truth["a"].append(2)
    assert score_output(truth, {"a": [1]}, schema, fields, ["exact_match"]).scores["exact_match"] == 0.0
    schema["type"] = "array"
    fields["a"]["compare"] = "ignore"
    changed = score_output(truth, {"a": [1]}, schema, fields, ["exact_match"])
    assert (changed.valid, changed.rows) == (False, ())


def test_threads_may_share_a_scorer() -> None:
    scorer = OutputScorer(SCHEMA, FIELDS)
    outputs = [{**OUTPUT, "shop": f"shop {number % 7}"} for number in range(200)]
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(lambda output: scorer.score(TRUTH, output), outputs))
    assert together == [OutputScorer(SCHEMA, FIELDS).score(TRUTH, output) for output in outputs]


def test_score_output_takes_none_as_null() -> None:
    assert score_output(None, None).scores["exact_match"] == 1.0
    assert score_output(None, {"a": 1}).mistakes[0].verdict == "extra"


@pytest.mark.parametrize(
    ("text", "found", "problem", "f1"),
    [
        ('{"a": 1}', "whole", None, 1.0),
        ('Sure:\n```json\n{"a": 1}\n```', "fenced", None, 1.0),
        ('It is {"a": 1}.', "embedded", None, 1.0),
        ("", None, "empty", None),
        ("I cannot.", None, "prose", None),
    ],
)
def test_score_text_parses_a_raw_output(text: str, found: str, problem: str, f1: float) -> None:
    scored = score_text({"a": 1}, text, {"type": "object"})
    assert (scored.found, scored.problem, scored.scores["field_level_f1"]) == (found, problem, f1)
    assert scored.scores["schema_valid"] == float(problem is None)
    assert scored.valid is (problem is None)
    assert (scored.rows == ()) is (problem is not None)


def test_score_output_takes_json_and_score_text_raw_text() -> None:
    assert score_output("7", "7").scores["exact_match"] == 1.0
    assert score_text(7, "7").scores["exact_match"] == 1.0
    assert score_output(7, "7").scores["exact_match"] == 0.0


def test_score_without_a_schema_has_no_validity() -> None:
    for found in (score_output({"a": 1}, {"a": 1}), score_text({"a": 1}, "no")):
        assert found.valid is None
        assert "schema_valid" not in found.scores
    assert list(score_output(1, 1).scores) == [name for name in DEFAULT_METRICS if name != "schema_valid"]
    assert list(score_output(1, 1, {}).scores) == list(DEFAULT_METRICS)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tolerance": 1}, "fields.total in the arguments requires `compare` or `align`, since there is no schema"),
        ({"align": "key"}, "`align: key` at fields.total in the arguments requires `key: [NAME, …]`"),
    ],
)
def test_field_without_a_schema_requires_compare_or_align(settings: Any, message: str) -> None:
    with pytest.raises(SkillEvaluatorError) as caught:
        OutputScorer(fields={"total": settings})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fields": {"lnes": {}}}, "field 'lnes' in the arguments is not in the schema (did you mean 'lines'?)"),
        ({"fields": {"shop": {"tolerence": 1}}}, "unknown key at fields.shop.tolerence in the arguments"),
        ({"fields": ["shop"]}, "a mapping of keys to values is expected at fields in the arguments"),
        ({"metrics": ["exact_mach"]}, "unknown metric 'exact_mach' in the arguments (did you mean 'exact_match'?)"),
        (
            {"schema": {"type": "objekt"}},
            "unknown type 'objekt' at type in the schema argument (did you mean 'object'?)",
        ),
        ({"metrics": ["schema_valid"], "schema": None}, "the metric 'schema_valid' in the arguments requires a schema"),
    ],
)
def test_invalid_argument_is_refused_with_its_place(arguments: Any, message: str) -> None:
    with pytest.raises(SkillEvaluatorError) as caught:
        OutputScorer(**{"schema": SCHEMA, **arguments})
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [1, (2,)]}, "output.a[1] is a tuple, not a JSON value; pass values as json.loads returns them"),
        (
            {"day": datetime.date(2026, 1, 1)},
            "output.day is a date, not a JSON value; pass values as json.loads returns them",
        ),
        ([float("nan")], "output[0] is nan, which is not a JSON value"),
        ({"a": {1: 2}}, "the key 1 of output.a is not a str; pass values as json.loads returns them"),
        ([10**4300], "output[0] is an integer of more than 4,300 digits, which json.loads does not read"),
        (b"{}", "output is a bytes, not a JSON value; pass values as json.loads returns them"),
    ],
)
def test_value_that_is_not_json_is_refused_with_its_path(value: Any, message: str) -> None:
    with pytest.raises(NotJsonError) as caught:
        score_output({}, value)
    assert str(caught.value) == message
    with pytest.raises(NotJsonError) as caught:
        score_output(value, {})
    assert str(caught.value) == message.replace("output", "truth")


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": [value]}
    return value


def test_deep_json_is_scored_or_refused() -> None:
    assert score_output(nested(60), nested(60)).scores["exact_match"] == 1.0
    with pytest.raises(NotJsonError, match=r"^truth is nested too deeply"):
        score_output(nested(10_000), 1)
    with pytest.raises(NotJsonError, match=r"^output is nested too deeply"):
        score_output(1, nested(10_000))
    for truth in (nested(200), NO_TRUTH):
        with pytest.raises(NotJsonError, match=r"^output is nested too deeply"):
            score_output(truth, nested(200), {"type": "string"})


def test_odd_text_scores_0() -> None:
    assert score_text({"a": 2}, '{"a": 1, "a": 2}').scores["exact_match"] == 1
    for odd in ("\ud800", '{"\ud800": 1}', "7" * 4300):
        found = score_text({"a": 1}, f'{{"a": "{odd}"}}' if odd == "\ud800" else odd, {"type": "object"})
        assert found.scores["exact_match"] == 0
        assert json.loads(json.dumps(found.as_dict()))["scores"] == found.scores
        assert all(map(str, found.rows))


def test_scorer_compiles_schema_and_fields_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []

    def counting(name: str) -> Callable[..., Any]:
        original = getattr(scores, name)
        return lambda *arguments: (compiled.append(name), original(*arguments))[1]

    for name in ("Contract", "plan_fields", "accuracy_metrics"):
        monkeypatch.setattr(scores, name, counting(name))
    scorer = OutputScorer(SCHEMA, FIELDS)
    results = [scorer.score(TRUTH, OUTPUT), scorer.score(TRUTH, OUTPUT), scorer.score_text(TRUTH, json.dumps(OUTPUT))]
    assert compiled == ["Contract", "plan_fields", "accuracy_metrics"]
    assert results[0] == results[1] == score_output(TRUTH, OUTPUT, SCHEMA, FIELDS)
    assert (results[0].scores, results[0].rows) == (results[2].scores, results[2].rows)


def test_package_exports_exactly_its_public_names() -> None:
    for name in skill_evaluator.__all__:
        assert getattr(skill_evaluator, name) is getattr(api if name == "Library" else scores, name)
    with pytest.raises(AttributeError, match=r"module 'skill_evaluator' has no attribute 'score_outputs'"):
        skill_evaluator.score_outputs  # noqa: B018


IMPORTS = """
import sys
before = set(sys.modules)
import skill_evaluator
assert set(sys.modules) - before == {"skill_evaluator"}, set(sys.modules) - before
fields = {"a": {"align": "key", "key": ["b"]}}
schema = {"properties": {"a": {"items": {"properties": {"b": {"type": "string"}}}}}}
value = {"a": [{"b": "x"}, {"b": "y"}]}
assert skill_evaluator.score_output(value, value, schema, fields).scores["field_level_f1"] == 1
print(sorted({"anthropic", "openai", "google.genai", "xllamacpp", "numpy", "scipy"} & set(sys.modules)))
"""


def test_importing_the_package_imports_no_heavy_library() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_metrics_accepts_a_single_name() -> None:
    assert score_output(1, 1, metrics="exact_match").scores == {"exact_match": 1.0}


@pytest.mark.parametrize("text", [None, b"{}", {"a": 1}])
def test_score_text_refuses_an_output_that_is_no_text(text: Any) -> None:
    kind = type(text).__name__
    with pytest.raises(
        NotJsonError, match=f"^the text of the output is a {kind}, not a str; use score_output for a parsed"
    ):
        score_text({}, text)


@pytest.mark.parametrize("methods", [Library, Judges, Audits])
def test_arguments_of_a_method_are_options_of_its_request(methods: type) -> None:
    requests = vars(sys.modules[methods.__module__])
    requests = {**vars(requests.get("requests", sys)), **requests}
    for name, method in inspect.getmembers(methods, inspect.isfunction):
        for request in re.findall(r"request(?:_of)?\((?:requests\.)?(\w+),", inspect.getsource(method)):
            options = {field.name for field in dataclasses.fields(requests.get(request, SiteBuild))}
            parameters = inspect.signature(method).parameters
            shared = [key for kind in get_args(get_type_hints(method).get("options")) for key in get_type_hints(kind)]
            assert {*parameters, *shared} - options <= {"self", "watch", "on_problem", "options", "invocation"}, name


@pytest.fixture(scope="module")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    subprocess.run([sys.executable, "-m", "skill_evaluator", "demo", "demo"], cwd=folder, check=True)
    return folder / "demo"


@pytest.fixture
def demo(demo_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in the library of the demo, as a program of a user does."""
    monkeypatch.chdir(demo_folder)


def printed(*words: str) -> Any:
    """What a command prints as JSON."""
    command = [sys.executable, "-m", "skill_evaluator", *words, "--format", "json"]
    return json.loads(subprocess.run(command, capture_output=True, check=False).stdout)


@pytest.mark.usefixtures("demo")
def test_library_returns_what_the_commands_print() -> None:
    library = Library()
    worse = library.compare("receipts", candidate="1.1.0")
    assert worse.verdict == "regressed"
    assert worse.model_dump(mode="json") == printed("compare", "receipts", "--candidate", "1.1.0")
    assert library.history("receipts").to_ship == "1.2.0"
    assert [one.skill for one in library.leaderboard()] == ["receipts"]
    (run,) = library.try_("receipts", replicates=2, models=("example-small",)).finished
    assert (run.record.complete, run.record.draft) == (True, True)
    manifest, views = library.explain(run.folder.name, field="date")
    assert (manifest.run_id, len(views)) == (run.record.run_id, run.record.n_cases)
    assert library.score(run.folder)[0].record == run.record
    (checked,) = library.lint(names=("receipts",)).components
    assert (checked.name, checked.problems) == ("receipts", [])
    assert library.mutate("receipts", model="example-small", dry_run=True).calls > 0
    with pytest.raises(SkillEvaluatorError, match="did you mean 'receipts'"):
        library.compare("receipt")


@pytest.mark.usefixtures("demo")
def test_evaluation_keeps_the_signal_handlers_of_the_program() -> None:
    def handler(*_: object) -> None: ...

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        Library().try_("receipts", replicates=2, models="example-small")
        assert [signal.getsignal(number) for number in numbers] == [handler, handler]
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@pytest.mark.usefixtures("demo")
def test_library_accepts_texts_for_paths_and_single_names() -> None:
    library = Library()
    assert library.site(out="pages").problems == {}
    assert Path("pages/index.html").exists()
    assert [one.name for one in library.lint(names=Path("receipts")).components] == ["receipts"]
    assert [one.name for one in library.lint(names=["receipts"]).components] == ["receipts"]
    with pytest.raises(SkillEvaluatorError, match=r"none\.yaml does not exist"):
        library.judge.score(rubric="none.yaml", items="none.jsonl", judges="example-small")
    with pytest.raises(TypeError, match="unexpected keyword argument 'review'"):
        library.judge.calibrate(labels="none.jsonl", review=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'config'"):
        library.judge.calibrate(labels="none.jsonl", config="elsewhere")  # type: ignore[call-arg]
    for method, options, says in (
        ("export", {"to": "xml"}, r"argument 'to': unknown value 'xml' \(known: csv, jsonl, junit\)"),
        ("evaluate", {"skill": "receipts", "max_cost": "abc"}, "argument 'max_cost': .* a valid number.* got \"abc\""),
        ("dry_run", {"skill": 3}, "argument 'skill': a text is expected, got 3"),
        ("leaderboard", {"skills": "receipts", "models": "no-model"}, "no run of model 'no-model'"),
        ("compare", {"skill": "receipts", "candidate": 1.1}, "version or id '1.1'"),
    ):
        with pytest.raises(SkillEvaluatorError, match=says):
            getattr(library, method)(**options)
