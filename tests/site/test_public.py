"""A site with private documents shows only names of the schema, because other names may quote an output."""

import json
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import load_settings
from skill_evaluator.library.tables import CaseRows
from skill_evaluator.records.archive import Archive
from skill_evaluator.site.public import PublicNames
from skill_evaluator.verdicts.component import RecordedComponent
from skill_evaluator.verdicts.shipping import FlakyValue, Step

from tests.support.library import CASES, SKILL, Library
from tests.support.sites import built_site, site_page, words

pytest.importorskip("vl_convert")
pytestmark = pytest.mark.process
ASKED = ("-n", "4")
TRUTH_KEY, ANSWER_KEY, MADE_UP = "Jane Doe, 12 Elm St", "ACME \u2192 0.500", "A sentence, copied from the letter"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["bill", "letter"]},
        "topic": {"type": "string"},
        "amounts": {"type": "object", "additionalProperties": {"type": "number"}},
    },
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A library with two versions. The second lacks keys of the ground truth, and adds a key and a category."""
    library = Library(tmp_path_factory.mktemp("measured"))
    library.write(f"components/{SKILL}/schema.json", SCHEMA)
    scored = {"id": SKILL, "fixtures": SKILL, "metrics": ["field_level_f1"], "primary_metric": "field_level_f1"}
    declared = {"datasets": [{**scored, "fields": {"topic": {"compare": "category"}}}]}
    library.write(f"components/{SKILL}/evals/datasets.json", declared)
    right = {"kind": "bill", "topic": "A topic of the truth", "amounts": {TRUTH_KEY: 1}}
    wrong = {"kind": MADE_UP, "topic": MADE_UP, "amounts": {ANSWER_KEY: 2}}
    for case_id in CASES:
        library.case(case_id, right)
    for version, answer in (("1.0.0", right), ("1.1.0", wrong)):
        checks = [{"not_contains": "Mr Secret"}, {"not_contains": f"Client No {version}"}]
        library.write(f"fixtures/{SKILL}/cases/{CASES[0]}/meta.json", {"checks": checks})
        library.write(f"components/{SKILL}/prompt.md", f"---\nname: {SKILL}\nversion: {version}\n---\nRead it.\n")
        library.record_answers({(case_id, index): json.dumps(answer) for case_id in CASES for index in range(4)})
        library.evaluate_here(*ASKED)
    return library


def built(library: Library, documents: bool) -> tuple[Path, str]:
    """Build the site, and return its folder and the text of all pages."""
    library.settings(site={"components": {SKILL: {"documents": documents}}})
    site = built_site(library)
    files = sorted(site.rglob("*.html"))
    return site, unescape("\n".join(path.read_text("utf-8") for path in files))


REGRESSED = {"before": "1.0.0", "verdict": "regressed", "difference": None, "ci95": None, "q": None}


def test_private_names_are_removed_from_reasons(measured: Library) -> None:
    falls = [("e", "0.9 → 0.1"), ("kind", "0.9 → 0.1")]
    reasons = ["Worse here: e 0.9 → 0.1, kind 0.9 → 0.1", "e-mail.e fell"]
    step = Step.model_validate({**REGRESSED, "reasons": reasons, "falls": falls})
    shown = PublicNames(load_component(measured.root / "components", SKILL))._public_reasons(step)
    hidden = "a field that the schema does not name"
    assert shown["reasons"] == [f"Worse here: {hidden} 0.9 → 0.1, kind 0.9 → 0.1", "e-mail.e fell"]
    assert shown["falls"] == [(hidden, "0.9 → 0.1"), falls[1]]


def test_check_of_a_case_is_named_only_if_its_id_quotes_nothing(measured: Library) -> None:
    component = load_component(measured.root / "components", SKILL)
    checks = [{"contains": "Mr Secret", "id": "client"}, {"contains": "Mr Secret", "id": "contains-mr-secret"}]
    rows = CaseRows(rows=[("one", 1, {"checks": checks})])
    files = replace(component.files, cases=replace(component.files.cases, rows=rows))
    falls = [("checks.client", "0.9 → 0.1"), ("checks.contains-mr-secret", "0.9 → 0.1"), ("", "0.9 → 0.1")]
    shown = PublicNames(replace(component, files=files))._public_reasons(
        Step.model_validate({**REGRESSED, "reasons": [], "falls": falls})
    )
    assert [path for path, _ in shown["falls"]] == ["checks.client", "a check without a name", ""]


def test_private_names_are_removed_from_history_and_advice(measured: Library) -> None:
    component = load_component(measured.root / "components", SKILL)
    settings = load_settings(measured.root / ".evaluator")
    status = RecordedComponent(component=component, archive=Archive(component), settings=settings).status()
    assert status is not None
    model, fell, secret = status.history.models[0], f"amounts.{TRUTH_KEY} 1.000 → 0.000", "checks.contains-secret-42"
    reasons = [f"{secret}: -0.500 by all changes since 1.0.0", f"amounts.{ANSWER_KEY}, kind, {secret} fell"]
    since = {"version": "1.0.0", "run_id": "a", "metric": secret, "difference": -0.5, "ci95": (-1, 0), "q": 0}
    since["verdict"] = "regressed"
    step = Step.model_validate({**REGRESSED, "reasons": reasons, "fell_most": fell, "since_accepted": since})
    flaky = [FlakyValue(case_id=CASES[0], path=secret, right=["1/2"])]
    points = [model.points[-1].model_copy(update={"step": step})]
    private = model.model_copy(update={"points": points, "flaky": flaky})
    history = status.history.model_copy(update={"models": [private]})
    advice = status.ranking.advice.model_copy(update={"reason": f"1.1.0 regressed, most in field {fell}"})
    ranking = status.ranking.model_copy(update={"advice": advice})
    shown = PublicNames(component).status(replace(status, history=history, ranking=ranking))
    field, check = "a field that the schema does not name", "a check without a name"
    assert shown.ranking.advice.reason == f"1.1.0 regressed, most in {field}"
    assert shown.history.advice == shown.ranking.advice
    (public,) = shown.history.models
    found = public.points[0].step
    assert found.reasons == [f"{check}: -0.500 by all changes since 1.0.0", f"{field}, kind, {check} fell"]
    assert (found.fell_most, found.since_accepted.metric) == (f"{field} 1.000 → 0.000", check)
    assert [value.path for value in public.flaky] == [check]


def test_site_without_documents_has_no_key_or_label_of_an_output(measured: Library) -> None:
    """This also holds for a build after one with documents."""
    site, private = built(measured, documents=False)
    page, compared = f"components/{SKILL}.html", f"compare/{SKILL}/1.1.0.html"
    assert "the most frequent output changed in" not in words(site_page(site, compared))
    _, public = built(measured, documents=True)
    changed = site_page(site, compared)
    assert "the most frequent output changed in" in words(changed)
    assert changed.find("caption", string="Outputs that changed") is not None
    _, again = built(measured, documents=False)
    for secret in (TRUTH_KEY, "Elm St", "ACME", MADE_UP, "copied from", "A topic"):
        assert (secret in private, secret in public, secret in again) == (False, True, False), secret
    shown = site_page(site, page)
    fields = shown.find("caption", string="Values of each field").parent.select("tbody th")
    assert {words(field) for field in fields} == {"kind", "topic"}
    (heat,) = shown.find_all("table", class_="heat")
    assert [words(cell) for cell in heat.select("thead th, tbody th, tbody td")] == [
        *("truth", "bill", "(not in the schema)"),
        *("bill", "0", "12"),
    ]
    assert "Not shown: 4 fields that the schema" in words(shown)
    assert ("client-no" in private, "client-no" in public, "secret" in private) == (False, True, False)
    text = words(site_page(site, compared))
    assert "lost more than" in text
    assert "a field that the schema does not name" in text
