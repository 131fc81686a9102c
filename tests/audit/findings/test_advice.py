"""Advice never puts a model above one that dominates it."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.audit.findings.advice import dominated_last, dominates, regimes_of, steadiest_first
from skill_evaluator.audit.report.wording import finding_words
from skill_evaluator.audit.results import AuditResult, Medians, ModelAudit, Worst
from skill_evaluator.audit.statistics.grades import grades_of, quadrants_of

from tests.support.audit_results import an_audit


def a_model(name: str, ability: float, fluctuation: float, corrected: float | None, usd: float | None) -> ModelAudit:
    return ModelAudit(
        model=name,
        ability=ability,
        fluctuation=fluctuation,
        corrected=corrected,
        grade=None,
        quadrant=None,
        benchmarks={},
        shares={},
        scenarios={},
        worst=Worst(scenario="bare", score=ability, drop=0.0),
        usd_per_1000_right=usd,
    )


@st.composite
def cohorts(draw) -> list[ModelAudit]:
    """Graded models, with many ties; the noise is known of all or of none."""
    few = st.integers(0, 4)
    size, split = draw(st.integers(2, 8)), draw(st.booleans())
    models = [
        a_model(f"m{place}", 50.0 + draw(few), 1.0 + draw(few), float(draw(few)) if split else None, float(draw(few)))
        for place in range(size)
    ]
    abilities, fluctuations = (
        np.array([getattr(model, name) for model in models]) for name in ("ability", "fluctuation")
    )
    graded = zip(models, grades_of(fluctuations), quadrants_of(abilities, fluctuations), strict=True)
    return [
        model.model_copy(
            update={
                "grade": grade,
                "quadrant": quadrant,
                "scenarios": {f"s{at}": model.ability + at * model.fluctuation / 8 for at in (-1, 0, 1)},
            }
        )
        for model, grade, quadrant in graded
    ]


def no_better(model: ModelAudit, other: ModelAudit) -> bool:
    """What the advice must heed, said anew: no better in ability, nor in any fluctuation, and worse in something."""
    if min(other.scenarios.values()) > max(model.scenarios.values()):
        return True
    pairs = [(other.ability, model.ability), (model.fluctuation, other.fluctuation)]
    if model.corrected is not None and other.corrected is not None:
        pairs.append((model.corrected, other.corrected))
    return all(good >= bad for good, bad in pairs) and any(good > bad for good, bad in pairs)


@given(cohorts())
def test_no_advice_puts_a_model_above_one_that_is_no_worse_in_anything(models) -> None:
    by_name = {model.model: model for model in models}
    regimes = regimes_of(models)
    for regime in ("agentic", "single-shot", "cost-sensitive"):
        ranked = [by_name[place.model] for place in regimes[regime].ranked]
        for above, below in combinations(ranked, 2):
            cheaper = regime == "cost-sensitive" and above.usd_per_1000_right < below.usd_per_1000_right
            assert cheaper or not no_better(above, below)
            if regime != "cost-sensitive":
                assert not dominates(below, above)


def headline(result: AuditResult) -> str:
    return ": ".join(finding_words(result))


@given(cohorts())
def test_the_headline_advises_no_dominated_model(models) -> None:
    medians = Medians(ability=0.0, fluctuation=0.0)
    result = an_audit().model_copy(update={"models": models, "medians": medians})
    sentence = headline(result)
    for model in models:
        if sentence.startswith(f"{model.model} is the safe default"):
            assert not any(dominates(other, model) for other in models)


@given(cohorts())
def test_dominance_has_no_circle_and_moves_nothing_else(models) -> None:
    order = dominated_last(models)
    assert sorted(model.model for model in order) == sorted(model.model for model in models)
    assert not any(dominates(model, model) for model in models)
    alone = [model for model in models if not any(dominates(a, b) or dominates(b, a) for a in models for b in [model])]
    assert [model for model in order if model in alone] == alone


def test_who_only_looks_steadier_is_not_above_an_abler_one_and_the_cheap_says_who_is_better() -> None:
    noisy = a_model("noisy", 80.0, 2.0, 0.5, None).model_copy(update={"grade": "BBB"})
    calm = a_model("calm", 60.0, 1.0, 0.9, None).model_copy(update={"grade": "AAA", "quadrant": "safe default"})
    assert [model.model for model in steadiest_first([calm, noisy])] == ["noisy", "calm"]
    result = an_audit().model_copy(update={"models": [calm, noisy]})
    assert headline(result).startswith("No model is a safe default: noisy is no less able and, without noise,")
    cheap, good = a_model("cheap", 70.0, 3.0, None, 0.1), a_model("good", 75.0, 1.0, None, 0.2)
    ranked = regimes_of([cheap, good])["cost-sensitive"].ranked
    assert [place.model for place in ranked] == ["cheap", "good"]
    assert ranked[0].reason.endswith("no less able and no less steady: good")


def test_a_safe_default_that_another_model_is_above_in_every_scenario_is_not_advised() -> None:
    safe = a_model("safe", 70.0, 1.0, None, None)
    safe = safe.model_copy(update={"grade": "AAA", "quadrant": "safe default", "scenarios": {"a": 69.0, "b": 71.0}})
    strong = a_model("strong", 75.0, 4.0, None, 0.2)
    strong = strong.model_copy(update={"grade": "BBB", "scenarios": {"a": 72.0, "b": 78.0}})
    result = an_audit().model_copy(update={"models": [safe, strong]})
    sentence = "No model is a safe default: strong scores more in its worst scenario than safe in its best"
    assert headline(result).startswith(sentence)
    cheap = safe.model_copy(update={"usd_per_1000_right": 0.1})
    assert "above it in every scenario: strong" in regimes_of([cheap, strong])["cost-sensitive"].ranked[0].reason
