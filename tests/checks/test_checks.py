"""Checks by kind, declarations with ids and digests, and invalid declarations."""

import time
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.checks import CHECKS, Check, DeclaredCheck, passes, read_checks
from skill_evaluator.errors import ComponentError
from skill_evaluator.files import validated
from skill_evaluator.parsing import parse_output

WHERE = Path("meta.json")


def checks(*declared: Any, folder: Path = Path()) -> tuple[Check, ...]:
    """Read checks as people write them."""
    read = [validated(DeclaredCheck, one, WHERE, ComponentError) for one in declared]
    return read_checks(read, folder, WHERE, ComponentError, lambda path: path)


def passed(declared: Any, text: str) -> bool | None:
    (check,) = checks(declared)
    return passes(check, text, parse_output(text, "json"))


@pytest.mark.parametrize(
    ("declared", "right", "wrong"),
    [
        ({"contains": "Total"}, "The Total is 9", "the total is 9"),
        ({"contains": 9}, "The total is 9", "The total is 8"),
        ({"contains": "TOTAL", "ignore_case": True}, "the total", "the sum"),
        ({"contains_any": ["sum", "total"]}, "a total", "a count"),
        ({"contains_all": ["sum", "total"]}, "total and sum", "the sum"),
        ({"equals": "yes"}, "yes", "yes "),
        ({"equals": "YES", "ignore_case": True}, "yes", "no"),
        ({"equals": {"a": 1, "b": [2]}}, '{"b": [2], "a": 1.0}', '{"a": 1}'),
        ({"equals": 9}, "9.0", "nine"),
        ({"one_of": ["yes", "no"]}, "no", "maybe"),
        ({"starts_with": "Dear"}, "Dear all,", "My dear"),
        ({"ends_with": "."}, "Done.", "Done.\n"),
        ({"regex": r"\b\d{4}-\d\d\b"}, "due 2026-03", "due 26-03"),
        ({"regex": r"^[A-C]$", "ignore_case": True}, "b", "bb"),
        ({"is_json": True}, '{"a": 1}', '```json\n{"a": 1}\n```'),
        ({"max_words": 3}, "one two\nthree", "one two three four"),
        ({"json": {"at": "/total"}}, '{"total": null}', '{"sum": 1}'),
        ({"json": {"at": "/lines/1/sku", "equals": "b"}}, '{"lines": [{}, {"sku": "b"}]}', '{"lines": [{"sku": "b"}]}'),
        ({"json": {"at": "/a~1b", "one_of": [1, 2]}}, '{"a/b": 2}', '{"a/b": "2"}'),
        ({"json": {"at": "/note", "contains": "X", "ignore_case": True}}, '{"note": "x"}', '{"note": "y"}'),
        ({"json": {"at": "/tags", "regex": "urgent"}}, '{"tags": ["urgent"]}', '{"tags": []}'),
        ({"json": {"at": "", "equals": [1]}}, "Here: [1]", "Here: [2]"),
    ],
)
def test_check_and_its_negation_pass_different_texts(declared: dict[str, Any], right: str, wrong: str) -> None:
    assert (passed(declared, right), passed(declared, wrong)) == (True, False)
    inner = declared.get("json", declared)
    kind = next((name for name in inner if name in CHECKS), None)
    if kind and CHECKS[kind].negatable:
        twin = {f"not_{name}" if name == kind else name: value for name, value in inner.items()}
        twin = {"json": twin} if "json" in declared else twin
        assert passed(twin, wrong) is ("json" not in declared or passed({"json": {"at": inner["at"]}}, wrong))
        assert passed(twin, right) is False


@pytest.mark.parametrize("check", [{"equals": 1}, {"not_equals": 1}, {"not_contains": "x"}, {}])
@pytest.mark.parametrize("answer", ["no JSON at all", '{"total": {"other": 1}}'])
def test_check_at_an_absent_pointer_fails_even_if_negated(check: dict[str, Any], answer: str) -> None:
    assert passed({"json": {"at": "/total/sum", **check}}, answer) is False


def test_sentence_for_a_judge_has_no_result_yet() -> None:
    assert passed({"expect": "It apologises."}, "Sorry.") is None


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"contain": "x"}, "unknown key 'contain' in a check (did you mean 'contains'?)"),
        ({"not_max_words": 3}, "unknown key 'not_max_words' in a check (did you mean 'max_words'?)"),
        ({"json": {"at": "/a", "is_json": True}}, "unknown key 'is_json' in a check"),
        ({"contains": "a", "regex": "b"}, "a check has several kinds (contains, regex); write one check for each kind"),
        ({"id": "short"}, "has no kind, such as contains"),
        ({"regex": "(?=a)b"}, "RE2 rejects the pattern"),
        ({"regex": r"(a)\1"}, "RE2 rejects the pattern"),
        ({"not_regex": "("}, "RE2 rejects the pattern"),
        ({"regex": "((a{100}){100}){100}"}, "RE2 rejects the pattern"),
        ({"contains": ""}, "at least 1 character"),
        ({"contains_any": "a, b"}, "a list is expected"),
        ({"is_json": False}, "is_json"),
        ({"max_words": 0}, "max_words"),
        ({"contains": "a", "weight": 0}, "weight"),
        ({"contains": "a", "id": "a.b"}, "id"),
        ({"json": {"at": "total", "equals": 1}}, "'total' is not a JSON pointer; write /total"),
        ({"python": "../checks.py:total"}, "python"),
        ({"python": "/etc/checks.py:total"}, "python"),
        ({"python": "missing.py:total"}, "missing.py does not exist"),
        ("contains", "a mapping of keys to values is expected"),
    ],
)
def test_invalid_check_is_rejected_in_one_line(declared: Any, words: str) -> None:
    with pytest.raises(ComponentError) as refused:
        checks(declared)
    assert words in str(refused.value)
    assert "meta.json" in str(refused.value) or "missing.py" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_check_id_is_derived_from_the_text_and_unique() -> None:
    ids = [one.id for one in checks({"contains": "Total amount"}, {"not_regex": r"\d+ EUR"}, {"is_json": True})]
    assert ids == ["contains-total-amount", "not_regex-d-eur", "is_json"]
    (long,) = checks({"expect": "The answer names the customer, apologises once and offers a refund."})
    assert long.id.startswith("expect-the-answer-names-the-customer")
    assert len(long.id) < 60
    with pytest.raises(ComponentError, match="two checks have the id 'contains-a'"):
        checks({"contains": "a"}, {"contains": "A"})
    assert [one.id for one in checks({"contains": "a"}, {"contains": "A", "id": "large"})] == ["contains-a", "large"]


def test_check_digest_covers_only_what_decides(tmp_path: Path) -> None:
    (plain,) = checks({"contains": "a"})
    (heavier,) = checks({"contains": "a", "id": "other", "weight": 3, "tier": "critical"})
    assert heavier.digest == plain.digest
    others = checks(
        {"contains": "b"},
        {"not_contains": "a", "id": "1"},
        {"contains": "a", "ignore_case": True, "id": "2"},
        {"json": {"at": "/a", "contains": "a"}},
    )
    assert len({one.digest for one in (plain, *others)}) == 5
    file = tmp_path / "checks.py"
    digests = set()
    for source in ("def right(text, context): return True", "def right(text, context): return False"):
        file.write_text(source)
        digests.add(checks({"python": "checks.py:right"}, folder=tmp_path)[0].digest)
    assert len(digests) == 2


def test_python_check_is_parsed_but_not_run_when_read(tmp_path: Path) -> None:
    file = tmp_path / "checks.py"
    file.write_text("raise SystemExit\ndef total_is_sum(text, context):\n    return True\n")
    (check,) = checks({"python": "checks.py:total_is_sum"}, folder=tmp_path)
    assert check.id == "total_is_sum"
    with pytest.raises(ComponentError, match=r"no function 'total_is' in .*did you mean 'total_is_sum'"):
        checks({"python": "checks.py:total_is"}, folder=tmp_path)
    file.write_text("def broken(:")
    with pytest.raises(ComponentError, match="is not valid Python"):
        checks({"python": "checks.py:broken"}, folder=tmp_path)
    with pytest.raises(ComponentError, match=r"absent.py does not exist; a check in .* requires the file"):
        checks({"python": "absent.py:right"}, folder=tmp_path)


def test_regex_does_not_backtrack() -> None:
    began = time.process_time()
    assert passed({"regex": r"^(a+)+$"}, "a" * 200_000 + "!") is False
    assert passed({"regex": r"(x+x+)+y"}, "x" * 200_000) is False
    assert time.process_time() - began < 2


def test_check_reads_a_lone_surrogate() -> None:
    assert passed({"regex": "^ok"}, "ok \ud800") is True
    assert passed({"contains": "ok"}, "ok \ud800") is True
