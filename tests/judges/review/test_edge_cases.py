"""Notes of reviewers are proposed as edge cases, in a form that a rubric takes."""

import yaml
from skill_evaluator.judges.review.edge_cases import proposed_edge_cases
from skill_evaluator.judges.review.labels import latest
from skill_evaluator.library.rubrics import EdgeCase

from tests.support.reviews import change, label, pair, scored

NOTE = 'two\n# lines: "quoted" é'


def test_a_note_becomes_an_edge_case_with_what_everybody_answered() -> None:
    items = {item.id: item for item in (scored(), pair(), change())}
    labels = [
        label(scored(), "ada", tone="3", note=NOTE),
        label(scored(), "ben", tone="1"),
        label(pair(), "ada", overall="1"),
        label(change(), "ada", factuality="candidate_worse high", tone="same", note="is an estimate a fact?"),
    ]
    proposed = yaml.safe_load(proposed_edge_cases(items, latest(labels)))
    assert proposed == {
        "tone": [
            {"situation": NOTE, "guidance": "ada: 3; ben: 1; decide which"},
            {"situation": "is an estimate a fact?", "guidance": "ada: same"},
        ],
        "factuality": [{"situation": "is an estimate a fact?", "guidance": "ada: candidate_worse (high)"}],
    }
    assert all(EdgeCase.model_validate(case) for cases in proposed.values() for case in cases)


def test_without_notes_nothing_is_proposed() -> None:
    assert proposed_edge_cases({pair().id: pair()}, latest([label(pair(), overall="1")])) == ""
