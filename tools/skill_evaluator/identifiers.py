"""Types for identifiers and bounded numbers in files."""

import datetime
import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

_COMPONENT_NAME = "^[A-Za-z0-9][A-Za-z0-9._-]*$"
UNNAMED = "unnamed"  # the model of imported results that name none
_MAX_FILE_NAME = 240  # characters; file systems allow 255 bytes including a suffix
FILE_NAME_RULE = f"at most {_MAX_FILE_NAME} letters, digits, '@', '.', '_', '+', '-'; the first not '.'"
_FILE_NAME = re.compile(rf"(?!\.)[\w@.+-]{{1,{_MAX_FILE_NAME}}}")
BASELINE = "baseline"  # suffix of the run id of an interleaved baseline, after an @
_MAX_NAME = 100  # characters of a component or model; both are parts of a CI job's folder name
NAME_RULE = f"at most {_MAX_NAME} of A-Z, a-z, 0-9, '.', '_', '-'; the first a letter or digit"


def moment(timestamp: str) -> datetime.datetime:
    """Parse an ISO 8601 timestamp; raise ValueError if it is invalid."""
    return datetime.datetime.fromisoformat(timestamp)


def now() -> str:
    """Return the current time in UTC as written in files, such as `2026-03-01T08:00:00Z`."""
    return f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"


def is_component_name(name: str) -> bool:
    """Return whether a folder name is valid as a component name."""
    return len(name) <= _MAX_NAME and re.fullmatch(_COMPONENT_NAME.strip("^$"), name) is not None


def is_file_name(name: str) -> bool:
    """Return whether a name has 1 to 240 letters, digits or characters of `@._+-`, and does not begin with a dot."""
    return _FILE_NAME.fullmatch(name) is not None


def is_address(url: str) -> bool:
    """Return whether a URL has a host, and a valid port or no port.

    >>> is_address("http://localhost:8000/v1"), is_address("http://:8000"), is_address("http://localhost:any")
    (True, False, False)
    """
    try:
        return bool(urlsplit(url).hostname) and urlsplit(url).port != 0
    except ValueError:
        return False


def invocation_of(run_id: str) -> str:
    """Return the first part of a run id, `<time>-<token>`, which all runs of one command have in common.

    >>> invocation_of("20260301T080000Z-abcdef-gpt-5@baseline")
    '20260301T080000Z-abcdef'
    """
    return "-".join(run_id.split("-", 2)[:2])


def is_baseline(run_id: str, beside: str | None) -> bool:
    """Return whether a run is an interleaved baseline. `beside` is the id of the run interleaved with it, if any."""
    return beside is not None and f"@{BASELINE}" in run_id


def _validate_timestamp(timestamp: str) -> str:
    moment(timestamp)
    return timestamp


def _validate_label(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"{text[:_MAX_FILE_NAME]!a} has an unprintable character")
    return text


def _validate_file_name(name: str) -> str:
    if not is_file_name(name):
        raise ValueError(f"{name[:_MAX_FILE_NAME]!a} cannot be the name of a file ({FILE_NAME_RULE})")
    return name


Tier = Literal["critical", "supporting", "advisory"]
Share = Annotated[float, Field(ge=0, le=1)]
Usd = Annotated[float, Field(ge=0, le=1e12)]  # bounded, so sums of costs stay finite
MAX_REPLICATES = 10_000  # limit per case and model; planned calls take memory
ReplicateCount = Annotated[int, Field(gt=0, le=MAX_REPLICATES)]
Label = Annotated[str, Field(max_length=500), AfterValidator(_validate_label)]
FileName = Annotated[str, AfterValidator(_validate_file_name)]
RunId = FileName
ComponentName = Annotated[str, Field(max_length=_MAX_NAME, pattern=_COMPONENT_NAME)]
ProviderName = Annotated[str, Field(min_length=1, max_length=_MAX_NAME), AfterValidator(_validate_label)]
ModelId = Annotated[str, Field(max_length=_MAX_NAME, pattern="^[A-Za-z0-9][A-Za-z0-9._:@/-]*$")]
CaseId = Annotated[str, Field(min_length=1, max_length=1000)]
ModelPatterns = Annotated[
    tuple[Annotated[Label, Field(min_length=1)], ...],
    Field(description="models that this case is not applicable to: ids, or patterns with *"),
]
MAX_VERSION = 100  # characters
VersionText = Annotated[str, Field(max_length=MAX_VERSION, pattern="^[A-Za-z0-9][A-Za-z0-9.+-]*$")]
ShardText = Annotated[str, Field(pattern="^[0-9]{1,6}/[0-9]{1,6}$")]
Digest = Annotated[str, Field(max_length=100, pattern="^[A-Za-z0-9:._-]+$")]
Commit = Annotated[str, Field(pattern="^[0-9a-f]{4,64}(-dirty)?$")]
Timestamp = Annotated[  # the only form in which text order equals time order
    str,
    Field(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"),
    AfterValidator(_validate_timestamp),
]
