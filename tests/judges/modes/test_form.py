"""The form that a prompt demands: which demands code understands, and whether an answer keeps them."""

from skill_evaluator.judges.modes.form import broken_rules, form_rules, keeps

THREE = "- a\n- b\n- c"


def test_what_code_understands_of_a_prompt() -> None:
    for prompt, rules in (
        ("Summarize it in 3 bullet points.", ["3 bullets"]),
        ("Give exactly five bullets.", ["5 bullets"]),
        ("Give three short bullet points", ["3 bullets"]),
        ("Use at most 4 bullets", ["1 to 4 bullets"]),
        ("Use 3 to 5 bullet points", ["3 to 5 bullets"]),
        ("Answer as bullet points.", ["at least 1 bullets"]),
        ("Answer in at most 100 words.", ["1 to 100 words"]),
        ("Answer in 100 words or less.", ["1 to 100 words"]),
        ("Use fewer than 1,000 characters.", ["1 to 999 characters"]),
        ("Write at least two paragraphs.", ["at least 2 paragraphs"]),
        ("Write in two sentences.", ["2 sentences"]),
        ("Return valid JSON.", ["JSON"]),
        ("In 3 bullets of at most 12 words each", ["3 bullets"]),
        ("At most 12 words per bullet", []),
        ("A list of 3 bullets with a title of at most 8 words", ["3 bullets"]),
        ("A summary of at most 100 words", ["1 to 100 words"]),
        ("The document has 300 words.", []),
        ("Say who bought the bullet train.", []),
        ("Classify it.", []),
    ):
        assert [str(rule) for rule in form_rules(prompt)] == rules, prompt


def test_whether_an_answer_keeps_a_rule_and_only_one_the_baseline_kept_can_be_broken() -> None:
    for prompt, text, kept in (
        ("In 3 bullets", THREE, True),
        ("In 3 bullets", "* a\n  • b\n– c", True),
        ("In 3 bullets", "a, b and c", False),
        ("In 3 bullets", f"{THREE}\n- d", False),
        ("In at most 2 words", "two words", True),
        ("In at most 2 words", "these are four words", False),
        ("In 2 sentences", "It rains. Take an umbrella!", True),
        ("In 2 sentences", "It costs 2.50 today.", False),
        ("As JSON", '{"a": 1}', True),
        ("As JSON", '```json\n{"a": 1}\n```', True),
        ("As JSON", 'Here: {"a": 1}', False),
        ("Use at most 3 lines", "a\n\nb\nc\n", True),
    ):
        (rule,) = form_rules(prompt)
        assert keeps(text, rule) is kept, prompt
    assert [str(rule) for rule in broken_rules("In 3 bullets", THREE, "prose")] == ["3 bullets"]
    assert broken_rules("In 3 bullets", "prose", "prose") == []
    assert broken_rules("In 3 bullets", THREE, THREE) == []
