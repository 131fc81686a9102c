"""What a file may hold that wants to end or to stall the program that reads it: depth, expansion, size, odd bytes."""

import json

from hypothesis import strategies as st

from tests.support.json_values import json_values

DEEP = 100_000


def deep_json(levels: int = DEEP) -> str:
    """Arrays in arrays."""
    return "[" * levels + "]" * levels


def deep_objects(levels: int = DEEP) -> str:
    """Objects in objects."""
    return '{"a":' * levels + "1" + "}" * levels


def deep_yaml(levels: int = 30_000) -> str:
    """A mapping with lists in lists; 30,000 of them in 60 kB end a process whose composer is recursive."""
    return f"x: {'[' * levels}{']' * levels}\n"


def laughing_yaml(rounds: int = 12, times: int = 10) -> str:
    """A few lines of aliases that stand for 10 to the power of 13 values."""
    lines = [f"a0: &a0 [{', '.join(['x'] * times)}]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * times)}]" for n in range(1, rounds + 1)]
    return "\n".join(lines) + "\n"


def merging_yaml(rounds: int = 9, times: int = 10) -> str:
    """The same by merge keys, which the loader copies."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * times)}]}}" for n in range(1, rounds + 1)]
    return "\n".join(lines) + "\n"


ODD_PIECES = (
    *(
        "\0",
        "\ufeff",
        "\x1b",
        "\x85",
        "\u2028",
        "\r",
        "\t",
        "%",
        "&a ",
        "*a",
        "!!int ''",
        "!!bool x",
        "!!float ''",
        "<<: ",
    ),
    *("1:1:1", "1:" * 300 + "1.0", "0x" + "f" * 500, "9" * 5000, "1e999", "NaN", ".inf", ".nan", "2024-02-30", "? [a]"),
    *("---", "...", "{", "}", "[", "]", '"', "\\ud800", "|", ">-", "- " * 60, "{{ prompt }}", "[" * 300, '{"a":' * 300),
    *("0001-01-01T00:00:00+23:59", "!!binary x", "!!set {a: [b]}", "!!omap x", "!!python/object:os.x {}", "..", "/"),
)
ODD_BYTES = (b"\xff", b"\xfe\xff\x00a", b"\xed\xa0\x80", b"\xc3", b"\x00" * 10)


def spoilt(*good: str) -> st.SearchStrategy[bytes]:
    """Any bytes, any JSON, or one of some good files, cut and with odd pieces put into it."""
    pieces = st.sampled_from(ODD_PIECES) | st.text(max_size=5) | st.sampled_from(["name: ", "version: ", "id: ", "\n"])
    raw = st.sampled_from(ODD_BYTES) | pieces.map(lambda text: text.encode("utf-8", "surrogatepass"))

    @st.composite
    def near(draw: st.DrawFn) -> bytes:
        content = draw(st.sampled_from(good)).encode()
        for _ in range(draw(st.integers(1, 3))):
            start = draw(st.integers(0, len(content)))
            end = draw(st.integers(start, min(len(content), start + 20)))
            content = content[:start] + draw(raw) + content[end:]
        return content

    return st.binary(max_size=60) | json_values.map(lambda value: json.dumps(value).encode()) | near()
