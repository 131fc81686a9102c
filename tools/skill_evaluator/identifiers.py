"""Identifiers as the file formats hold them: types that refuse what could be a path, a second line or a forgery.

Each is as strict as safety needs: what is only compared and shown may be any printable line; what becomes the name of a
file may not hold a separator.
"""

import datetime
import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

_COMPONENT_NAME = "^[A-Za-z0-9][A-Za-z0-9._-]*$"
_LONGEST = 240  # characters of a file's name; file systems take 255 bytes, and a suffix is to come
_FILE_NAME = re.compile(rf"(?!\.)[\w@.+-]{{1,{_LONGEST}}}")
BASELINE = "baseline"  # after an @, marks the id of a run that asks a baseline beside the run of a new version
_LONGEST_NAME = 100  # of a component or model: two of them become the name of a job's folder


def moment(timestamp: str) -> datetime.datetime:
    """Return the moment that a timestamp names; raise ValueError if it does not exist.

    >>> moment("2026-03-01T08:00:00Z").isoformat()
    '2026-03-01T08:00:00+00:00'
    """
    return datetime.datetime.fromisoformat(timestamp)


def now() -> str:
    """Return this moment as files have it, such as `2026-03-01T08:00:00Z`."""
    return f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"


def is_component_name(name: str) -> bool:
    """Return whether a folder's name can be a component's."""
    return len(name) <= _LONGEST_NAME and re.fullmatch(_COMPONENT_NAME.strip("^$"), name) is not None


def is_file_name(name: str) -> bool:
    """Return whether a name may become that of a file: letters and digits of any script, `@`, `.`, `_`, `+`, `-`.

    >>> is_file_name("20260301T080000Z-abcdef-gpt-5@baseline"), is_file_name("../x"), is_file_name(".x")
    (True, False, False)
    """
    return _FILE_NAME.fullmatch(name) is not None


def is_address(url: str) -> bool:
    """Return whether a URL names a host, and no port but a number.

    >>> is_address("http://localhost:8000/v1"), is_address("http://:8000"), is_address("http://localhost:any")
    (True, False, False)
    """
    try:
        return bool(urlsplit(url).hostname) and urlsplit(url).port != 0
    except ValueError:
        return False


def invocation_of(run_id: str) -> str:
    """Return the part of a run id that all models of one invocation share: `<time>-<token>`.

    >>> invocation_of("20260301T080000Z-abcdef-gpt-5@baseline")
    '20260301T080000Z-abcdef'
    """
    return "-".join(run_id.split("-", 2)[:2])


def is_baseline(run_id: str, beside: str | None) -> bool:
    """Return whether a run asked the baseline beside a candidate: it has no row, and gets no verdict."""
    return beside is not None and f"@{BASELINE}" in run_id


def _refuse_no_moment(timestamp: str) -> str:
    moment(timestamp)
    return timestamp


def _refuse_no_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"{text[:_LONGEST]!a} holds a character that does not print")
    return text


def _refuse_no_file_name(name: str) -> str:
    if not is_file_name(name):
        raise ValueError(f"{name[:_LONGEST]!a} cannot be the name of a file (letters, digits, '@', '.', '_', '+', '-')")
    return name


Tier = Literal["critical", "supporting", "advisory"]
Share = Annotated[float, Field(ge=0, le=1)]
Usd = Annotated[float, Field(ge=0, le=1e12)]  # so that no sum of costs is infinite
MOST_REPLICATES = 10_000  # a case and model; every planned call takes memory before the first one is made
ReplicateCount = Annotated[int, Field(gt=0, le=MOST_REPLICATES)]
Label = Annotated[str, Field(max_length=500), AfterValidator(_refuse_no_line)]
FileName = Annotated[str, AfterValidator(_refuse_no_file_name)]
RunId = FileName
ComponentName = Annotated[str, Field(max_length=_LONGEST_NAME, pattern=_COMPONENT_NAME)]
ProviderName = Annotated[str, Field(min_length=1, max_length=_LONGEST_NAME), AfterValidator(_refuse_no_line)]
ModelId = Annotated[str, Field(max_length=_LONGEST_NAME, pattern="^[A-Za-z0-9][A-Za-z0-9._:@/-]*$")]
CaseId = Annotated[str, Field(min_length=1, max_length=1000)]
ModelPatterns = Annotated[
    tuple[Annotated[Label, Field(min_length=1)], ...],
    Field(description="models that are not asked this case: ids, or patterns with *"),
]
LONGEST_VERSION = 100  # characters
VersionText = Annotated[str, Field(max_length=LONGEST_VERSION, pattern="^[A-Za-z0-9][A-Za-z0-9.+-]*$")]
ShardText = Annotated[str, Field(pattern="^[0-9]{1,6}/[0-9]{1,6}$")]
Digest = Annotated[str, Field(max_length=100, pattern="^[A-Za-z0-9:._-]+$")]
Commit = Annotated[str, Field(pattern="^[0-9a-f]{4,64}(-dirty)?$")]
Timestamp = Annotated[  # in this form alone the order of the texts is that of the moments
    str,
    Field(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"),
    AfterValidator(_refuse_no_moment),
]
