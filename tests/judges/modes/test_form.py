"""The form that a prompt demands: which demands code understands, and whether an answer keeps them."""

from skill_evaluator.judges.modes.form import broken_rules, form_rules, keeps

THREE = "- a\n- b\n- c"


def test_what_code_understands_of_a_prompt() -> None:
    for prompt, rules in (
        ("Summarize it in 3 bullet points.", ["3 bullets"]),
        ("Summarize it in three\nbullet points.", ["3 bullets"]),
        ("Give exactly five bullets.", ["5 bullets"]),
        ("Give three short bullet points", ["3 bullets"]),
        ("Use at most 4 bullets", ["1 to 4 bullets"]),
        ("Use 3 to 5 bullet points", ["3 to 5 bullets"]),
        ("Use between 3 and 5 bullet points", ["3 to 5 bullets"]),
        ("Use at least 3 and at most 5 bullets", ["3 to 5 bullets"]),
        ("Give 3 or 4 bullets, 3–4 bullets", ["3 to 4 bullets"]),
        ("Answer as bullet points.", ["at least 1 bullets"]),
        ("Answer as bullet points. Use at most 4 bullets.", ["1 to 4 bullets"]),
        ("Answer in at most 100 words.", ["1 to 100 words"]),
        ("Answer in not more than 100 words.", ["1 to 100 words"]),
        ("Answer in 100 words or less.", ["1 to 100 words"]),
        ("Use fewer than 1,000 characters.", ["1 to 999 characters"]),
        ("Write at least two paragraphs.", ["at least 2 paragraphs"]),
        ("Write more than two paragraphs.", ["at least 3 paragraphs"]),
        ("Write in two sentences.", ["2 sentences"]),
        ("Return valid JSON.", ["JSON"]),
        ("In 3 bullets of at most 12 words each", ["3 bullets"]),
        ("A list of 3 bullets with a title of at most 8 words", ["3 bullets"]),
        ("A summary of at most 100 words", ["1 to 100 words"]),
    ):
        assert [str(rule) for rule in form_rules(prompt)] == rules, prompt


def test_a_demand_that_code_does_not_understand_is_no_rule() -> None:
    for prompt in (
        "Give about 3 bullets",
        "Give 3, 4 or 5 bullets",
        "Give 5 to 3 bullets",
        "If it is short, use at most 3 sentences",
        "Do not use 3 bullets",
        "Use 3 bullets for the facts. Use 5 bullets for the risks.",
        "Answer in 100 words.",  # which means about 100
        "At most 12 words per bullet",
        "The document has 300 words and 3 bullets.",
        "Turn the bullet points below into prose.",
        "Read the JSON below.",
        "Do not answer in JSON.",
        "Say who bought the bullet train.",
        "Classify it.",
    ):
        assert form_rules(prompt) == (), prompt


def test_whether_an_answer_keeps_a_rule_and_only_one_the_baseline_kept_can_be_broken() -> None:
    for prompt, text, kept in (
        ("In 3 bullets", THREE, True),
        ("In 3 bullets", "* a\n  • b\n– c", True),
        ("In 3 bullets", "a, b and c", False),
        ("In 3 bullets", f"{THREE}\n- d", False),
        ("In 3 or 4 bullets", f"{THREE}\n- d", True),
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
