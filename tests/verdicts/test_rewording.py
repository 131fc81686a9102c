"""What neutral rewordings do to a model: from runs under scenarios, and from a committed audit."""

import json
import random
from pathlib import Path
from statistics import fmean, stdev

import pytest
from skill_evaluator.errors import AuditError
from skill_evaluator.library.components import load_component
from skill_evaluator.records.archive import Archive
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.history.baselines import audited_sigma, neutral_sigma, rewording_of, scenario_runs

from tests.support.library import SKILL, Library
from tests.support.records import a_record, a_run, keep

BASELINE = a_record({"a": [1.0, 1.0], "b": [0.5, 0.5]})
DIGESTS = {"prompt": "p", "schema": "s", "settings": "m", "datasets": "d"}


def _under(scenario: str, cases: dict[str, list[float]], **changed: object) -> Record:
    return a_record(
        cases,
        scenario=scenario,
        run_id=f"20260102T000000Z-000000-m@{scenario}",
        digests={**DIGESTS, "scenario": f"digest-of-{scenario}"},
        **changed,
    )


def test_without_replicate_noise_it_is_the_standard_deviation_over_scenarios() -> None:
    runs = [
        _under(name, {"a": [level] * 3, "b": [0.5] * 3}) for name, level in zip("xyz", (0.2, 0.6, 1.0), strict=True)
    ]
    rewording = neutral_sigma(BASELINE, runs)
    assert rewording is not None
    assert rewording.sigma == pytest.approx(stdev([0.35, 0.55, 0.75]) * (1 + 1 / 8))
    assert (rewording.n, rewording.source) == (3, "3 scenarios around 1.0.0")


def test_what_replicates_explain_is_no_rewording() -> None:
    runs = [_under(name, {"a": [1.0, 0.0], "b": [0.0, 1.0]}) for name in "xyz"]
    rewording = neutral_sigma(BASELINE, runs)
    assert rewording is not None
    assert rewording.sigma == 0.0


@pytest.mark.simulation
def test_on_average_it_is_the_true_spread_whatever_the_replicates_do() -> None:
    """Over 60 draws of 6 scenarios, where 3 replicates of 20 cases have an error of 0.039 beside a spread of 0.05."""
    generator = random.Random(12)
    spreads = []
    for _ in range(60):
        effects = [generator.gauss(0.0, 0.05) for _ in range(6)]
        runs = [
            _under(
                f"s{number}",
                {f"c{case}": [0.5 + effect + generator.gauss(0.0, 0.3) for _ in range(3)] for case in range(20)},
            )
            for number, effect in enumerate(effects)
        ]
        baseline = a_record({f"c{case}": [0.5] for case in range(20)})
        rewording = neutral_sigma(baseline, runs)
        assert rewording is not None
        spreads.append(rewording.sigma)
    assert fmean(spreads) == pytest.approx(0.05, abs=0.008)  # without the correction for noise: 0.063


def test_only_unchanged_cases_that_all_have_count() -> None:
    runs = [_under("x", {"a": [0.2, 0.2], "b": [1.0, 1.0]}), _under("y", {"a": [0.4, 0.4]})]
    rewording = neutral_sigma(BASELINE, runs)
    assert rewording is not None
    assert rewording.sigma == pytest.approx(stdev([0.2, 0.4]) * 1.25)
    other = BASELINE.model_copy(
        update={"per_case": [case.model_copy(update={"digest": "new"}) for case in BASELINE.per_case]}
    )
    assert neutral_sigma(other, runs) is None


def test_answers_that_cannot_be_read_count_as_wrong_and_lost_ones_do_not() -> None:
    runs = [_under("x", {"a": [1.0, 1.0]}), _under("y", {"a": ["unparseable", "unparseable", "provider_error"]})]  # type: ignore[list-item]
    rewording = neutral_sigma(BASELINE, runs)
    assert rewording is not None
    assert rewording.sigma == pytest.approx(stdev([0.0, 1.0]) * 1.25)


def test_runs_of_one_scenario_are_pooled_and_one_scenario_tells_nothing() -> None:
    twice = [_under("x", {"a": [0.0, 0.0]}), _under("x", {"a": [1.0, 1.0]})]
    assert neutral_sigma(BASELINE, twice) is None
    rewording = neutral_sigma(BASELINE, [*twice, _under("y", {"a": [0.5, 0.5]})])
    assert rewording is not None
    assert (rewording.sigma, rewording.n) == (0.0, 2)


def _kept(library: Library) -> tuple[Archive, Record]:
    baseline = a_run("1.0.0", 1, {"a": [1.0, 1.0]})
    scenarios = {f"s{level}": level / 10 for level in range(4)}
    keep(
        library,
        baseline,
        *(
            a_run(
                "1.0.0",
                2 + number,
                {"a": [level, level]},
                scenario=name,
                digests={**DIGESTS, "scenario": name, **({"settings": "other"} if name == "s3" else {})},
            )
            for number, (name, level) in enumerate(scenarios.items())
        ),
        a_run("1.1.0", 9, {"a": [0.0]}, scenario="s0"),
        a_run("1.0.0", 8, {"a": [0.0]}, scenario="s0", model_id="n"),
    )
    return Archive(load_component(library.root / "components", SKILL)), baseline


def test_runs_under_scenarios_of_the_same_version_model_and_inputs_are_taken(tmp_path: Path) -> None:
    archive, baseline = _kept(Library(tmp_path))
    assert [record.scenario for record in scenario_runs(archive, baseline)] == ["s2", "s1", "s0"]


def _audit(folder: Path, models: list[dict[str, object]], scenarios: int = 10) -> None:
    folder.mkdir(parents=True)
    report = {"audit_version": 1, "scenarios": [f"s{number}" for number in range(scenarios)], "models": models}
    (folder / "report.json").write_text(json.dumps(report))


def test_an_audit_of_the_component_says_it_too_the_newest_that_has_the_model(tmp_path: Path) -> None:
    for number, (model, fluctuation) in enumerate((("m", 9.0), ("m", 5.0), ("n", 1.0)), 1):
        quiz = {"quiz": {"ability": 70.0, "fluctuation": fluctuation}}
        _audit(tmp_path / f"{number}", [{"model": model, "fluctuation": 4.0, "benchmarks": quiz}])
    assert audited_sigma(tmp_path, BASELINE) is None, "other benchmarks say nothing of these cases"
    own = audited_sigma(tmp_path, BASELINE.model_copy(update={"skill": "quiz"}))
    assert own is not None
    assert (own.sigma, own.n, own.source) == (0.05, 10, "the audit 2 (10 scenarios)")
    assert audited_sigma(tmp_path / "none", BASELINE) is None
    (tmp_path / "3" / "report.json").write_text("{}")
    with pytest.raises(AuditError, match=r"3.report\.json"):
        audited_sigma(tmp_path, BASELINE)


def test_what_rests_on_more_scenarios_counts(tmp_path: Path) -> None:
    archive, baseline = _kept(Library(tmp_path / "library"))
    own = rewording_of(baseline, archive, tmp_path / "audits")
    assert own is not None
    assert own.source == "3 scenarios around 1.0.0"
    for number, (scenarios, source) in enumerate(((2, "3 scenarios"), (3, "3 scenarios"), (4, "the audit 2"))):
        of_model = {"model": "m", "benchmarks": {SKILL: {"fluctuation": 4.0}}}
        _audit(tmp_path / "audits" / str(number), [of_model], scenarios)
        rewording = rewording_of(baseline, archive, tmp_path / "audits")
        assert rewording is not None
        assert rewording.source.startswith(source)
