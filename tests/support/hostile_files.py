"""File contents that try to crash or stall a reader: depth, expansion, size, odd bytes, and values of other types."""

import json
import random
from typing import Any

from hypothesis import strategies as st

from tests.support.json_values import json_values

DEEP = 100_000


def deep_json(levels: int = DEEP) -> str:
    return "[" * levels + "]" * levels


def deep_objects(levels: int = DEEP) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def deep_yaml(levels: int = 900) -> str:
    """Return a mapping with nested lists. Newer versions of libyaml refuse 1,000 levels themselves."""
    return f"x: {'[' * levels}{']' * levels}\n"


def laughing_yaml(rounds: int = 12, times: int = 10) -> str:
    """Return a few lines of aliases that expand to 10 to the power of 13 values."""
    lines = [f"a0: &a0 [{', '.join(['x'] * times)}]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * times)}]" for n in range(1, rounds + 1)]
    return "\n".join(lines) + "\n"


def merging_yaml(rounds: int = 9, times: int = 10) -> str:
    """Return the same expansion by merge keys, which the loader copies."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * times)}]}}" for n in range(1, rounds + 1)]
    return "\n".join(lines) + "\n"


PIECES = (
    *("\0", "\ufeff", "\x1b", "\x85", "\u2028", "\r", "\t", "%", "&a ", "*a", "!!int ''", "!!bool x", "<<: ", "\n"),
    *("1:1:1", "1:" * 300 + "1.0", "0x" + "f" * 500, "9" * 5000, "1e999", "NaN", ".inf", ".nan", "2024-02-30", "? [a]"),
    *("---", "...", "{", "}", "[", "]", '"', "\\ud800", "|", ">-", "- " * 60, "{{ prompt }}", "[" * 300, '{"a":' * 300),
    *("0001-01-01T00:00:00+23:59", "!!binary x", "!!set {a: [b]}", "!!omap x", "!!python/object:os.x {}", "..", "/"),
)
RAW = (*(piece.encode() for piece in PIECES), b"\xff", b"\xfe\xff\x00a", b"\xed\xa0\x80", b"\xc3", b"\x00" * 10)
VALUES: tuple[Any, ...] = (
    *(None, True, False, [], {}, [[]], {"a": 1}, [1, "a", None], 0, -1, 0.5, -0.0, 2**63, 10**400, 1e308, 5e-324),
    *(
        "",
        " ",
        "\0",
        "a\nb",
        "\r::error::x",
        "\x1b[31m",
        "\u202e",
        "\ud800",
        "x" * 5_000,
        "é" * 300,
        "..",
        "/etc/passwd",
    ),
    *("null", "1", "1e5", "NaN", "9/3", "0/0", "1.0", "9.9.9", "9999-12-31T23:59:59Z", "2026-13-45T99:99:99Z", "HEAD"),
    *(
        "{{ prompt }}",
        "$(id)",
        "<script>",
        "sha256:" + "0" * 64,
        "0" * 40,
        "recorded",
        "alpha",
        "exact_match",
        "(a+)+$",
    ),
)


def spoilt(*good: str) -> st.SearchStrategy[bytes]:
    """Any bytes, any JSON, or a valid file with a value, a key or some bytes changed."""
    dice = st.randoms(use_true_random=False)
    return (
        st.binary(max_size=60)
        | json_values.map(lambda value: json.dumps(value).encode())
        | st.builds(with_odd_bytes, st.sampled_from(good), dice)
        | st.builds(with_another_value, st.sampled_from(good), dice)
    )


def with_odd_bytes(good: str, dice: random.Random) -> bytes:
    """Replace up to three pieces of a file by odd bytes."""
    content = good.encode()
    for _ in range(dice.randint(1, 3)):
        start = dice.randint(0, len(content))
        end = dice.choice((start, start + 1, start + 20, len(content)))
        content = content[:start] + dice.choice(RAW) + content[end:]
    return content


def with_another_value(good: str, dice: random.Random) -> bytes:
    """Replace, remove or rename a value in JSON or in one line of JSON; replace the value of a line of YAML."""
    lines = good.split("\n")
    at = dice.randrange(len(lines))
    changed = _changed_json(good, dice)
    if changed is None:
        key, colon, _ = lines[at].partition(": ")
        lines[at] = _changed_json(lines[at], dice) or key + colon + json.dumps(dice.choice(VALUES))
        changed = "\n".join(lines)
    return changed.encode("utf-8", "surrogatepass")


def _changed_json(text: str, dice: random.Random) -> str | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if not isinstance(value, dict | list):
        return None
    _change(value, dice)
    return json.dumps(value, ensure_ascii=dice.random() < 0.5)


def _change(value: Any, dice: random.Random) -> None:
    waiting, places = [value], []
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        places += [(holder, key) for key in keys]
        waiting += [holder[key] for key in keys if isinstance(holder[key], dict | list)]
    if not places:
        return
    holder, key = dice.choice(places)
    match dice.randrange(4):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[str(dice.choice(VALUES))] = holder.pop(key)
        case 1:
            holder.insert(0, holder[key])
        case _:
            holder[key] = dice.choice(VALUES)
