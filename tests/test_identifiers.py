"""Identifiers in files: usual names are accepted; paths, line breaks and control characters are refused."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from skill_evaluator import identifiers as types
from skill_evaluator.errors import ComponentError
from skill_evaluator.library.prompts import check_semver
from skill_evaluator.runner.journal import run_id_of

GOOD: dict[str, tuple[Any, tuple[str, ...]]] = {
    "component": (types.ComponentName, ("receipts", "Award-notice.v2", "0")),
    "run": (types.RunId, ("20260301T080000Z-abcdef-gpt-5@baseline-1of2", "v1-partial4", "größe", "_r", "模型")),
    "model": (types.ModelId, ("gpt-5", "vendor/m:free@2026", "models/gemini-3")),
    "version": (types.VersionText, ("1.2.0", "1.2.0-rc.1+build.5", "draft")),
    "label": (types.Label, ("openai", "Polite and long", "模型 (neu)", "")),
    "case": (types.CaseId, ("a", "Größe 1", "quiz/bare/q-17")),
    "digest": (types.Digest, ("sha256:" + "0a" * 32,)),
    "commit": (types.Commit, ("0a" * 20, "0a" * 32, "0a" * 20 + "-dirty")),
    "timestamp": (types.Timestamp, ("2026-03-01T08:00:00Z", "2024-02-29T23:59:59Z")),
    "shard": (types.ShardText, ("1/2", "12/256")),
}
NEVER = ("a\nb", "a\rCo-authored-by: x", "a\x00b", "\x1b[31m", "a\u2028b", "\u202ea", "\udcff")
NO_NAME = ("", ".", "..", "../x", "a/b", "a\\b", ".hidden", "/etc", "a b", "-" * 241, "[skip ci]", "a:b", "$(id)")
BAD: dict[str, tuple[str, ...]] = {
    "component": (*NO_NAME, *NEVER, "größe", "-a", "a/..", "a" * 201),
    "run": (*NO_NAME, *NEVER),
    "model": (*NEVER, "", "../x", " m", "[skip ci]", "m" * 201),
    "version": (*NEVER, "", "1.0.0 ", "1/0", "..", "1" * 101),
    "label": (*NEVER, "x" * 501),
    "case": ("", "x" * 1001, "\udcff"),
    "digest": (*NEVER, "", "sha256: 1", "x" * 101),
    "commit": (*NEVER, "", "HEAD", "--upload-pack=x", "0A" * 20, "0a" * 20 + "-clean"),
    "timestamp": (*NEVER, "", "2026-02-30T00:00:00Z", "2026-03-01T24:61:00Z", "2026-03-01T08:00:00+00:00"),
    "shard": (*NEVER, "", "1", "1/2/3", "-1/2", "0.5/1"),
}


def test_identifiers_accept_usual_names_and_refuse_paths_and_controls() -> None:
    for kind, (type_, good) in GOOD.items():
        adapter = TypeAdapter(type_)
        assert tuple(map(adapter.validate_python, good)) == good
        for text in BAD[kind]:
            with pytest.raises(ValidationError):
                raise AssertionError(f"{kind}: {adapter.validate_python(text)!r}")


@given(
    skill=st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z"),
    model=st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._:@/-]{0,99}\Z"),
    mark=st.text(max_size=40),
)
def test_every_generated_run_id_is_valid(skill: str, model: str, mark: str) -> None:
    run_id = run_id_of("20260301T080000Z-abcdef", skill, model, mark=mark)
    assert TypeAdapter(types.RunId).validate_python(run_id) == run_id


@given(
    core=st.tuples(*[st.integers(0, 10**40).map(str)] * 3).map(".".join),
    rest=st.from_regex(r"\A(-[a-z][a-z0-9-]{0,150})?(\+[a-z0-9-]{1,150})?\Z"),
)
def test_every_semver_version_is_a_valid_version_text(core: str, rest: str) -> None:
    try:
        version = check_semver(core + rest, Path("prompt.md"))
    except ComponentError:
        return
    assert TypeAdapter(types.VersionText).validate_python(version) == version
