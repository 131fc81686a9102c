"""A program or an endpoint under test, which replaces the model (`program:` of a component).

A program gets JSON on stdin and its declared variables. An endpoint gets the declared body, filled with inputs.
"""

import json
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from skill_evaluator.checks import NO_VALUE, value_at
from skill_evaluator.errors import ConfigError
from skill_evaluator.library.config import Model, Settings
from skill_evaluator.library.prompts import Endpoint, File, ProgramUnderTest
from skill_evaluator.processes import ProcessResult, Program, run_process, run_process_in
from skill_evaluator.providers import base
from skill_evaluator.providers.remote import (
    UNREADABLE,
    RemoteProvider,
    TooLargeError,
    file_placeholder,
    parsed_response,
)

MODEL = Model(id="program", provider="program", structured_output="none")
VARIABLES = "PROGRAM_ENV"  # the CI secret with all variables of a program, one NAME=value per line
MARGIN_S = 5.0  # the time limit of a call exceeds that of the program by this
_SETUP_S = 1800.0
_MAX_THREADS = 256  # one per running program
_REASONS = {"exited": "exit_code", "timeout": "timeout", "absent": "not_started"}
_no_answer = partial(base.ProviderError, "no_answer", perhaps_billed=True)


def values_of(names: Iterable[str], keys: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the variables `names`, by name. Omit variables with an empty value.

    The secret PROGRAM_ENV has priority over `keys`, and `keys` over `environment`.
    """
    lines = (line.partition("=") for line in keys.get(VARIABLES, "").splitlines())
    variables = {**environment, **keys, **{name.strip(): value for name, _, value in lines}}
    return {name: variables[name] for name in names if variables.get(name)}


def kind_of(program: ProgramUnderTest, folder: Path, values: Mapping[str, str]) -> base.ProviderKind:
    """Return the provider kind of a component's program or endpoint. `values` are its variables, by name."""

    def open_program(model: Model, key: str | None, settings: Settings) -> base.Provider:
        limited = partial(Program, folder=folder, output_bytes=settings.limits.response_bytes)
        for argv in program.setup:
            ended = run_process(limited(argv=argv, seconds=_SETUP_S))
            if ended.problem:
                raise ConfigError(f"setup of {folder / 'prompt.md'}: {' '.join(argv):.200}: {ended.problem:.500}")
        if program.http is not None:
            return _endpoint(program.http, values, settings)
        seconds = settings.timeout_s - MARGIN_S
        return RunProvider(limited(argv=program.run or (), seconds=seconds, environment=values))

    missing = " and ".join(name for name in program.variables if name not in values)
    return base.ProviderKind(
        open=open_program,
        sampling=sampling,
        accepts=lambda model: ("pdf", "image"),
        key_variables=(missing,) if missing else (),  # one entry, since all variables are required
    )


class RunProvider:
    """The provider that starts a program for each call."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._threads = ThreadPoolExecutor(_MAX_THREADS)

    async def complete(self, request: base.Request) -> base.Completion:
        """Run the program. Raise ProviderError if it fails or has no answer. An output that is too long becomes ""."""
        task = {
            "inputs": {name: _program_input(value) for name, value in request.inputs.items()},
            "turns": [{"role": turn.role, "content": turn.text} for turn in request.turns],
            "case_id": request.case_id,
            "replicate": request.replicate,
            "seed": request.seed,
        }
        result = await run_process_in(self._threads, self._program, json.dumps(task).encode())
        if result.reason == "output":
            return base.Completion(text="", stop_reason="too_large")
        if result.problem is not None:
            kind: base.FailureKind = "timeout" if result.reason == "timeout" else "provider_error"
            raise base.ProviderError(_REASONS[result.reason], result.problem, kind=kind, perhaps_billed=True)
        return _answer(result)

    async def close(self) -> None:
        """Release the threads."""
        self._threads.shutdown(wait=False)


def _answer(result: ProcessResult) -> base.Completion:
    content = result.stdout
    try:
        fields = base.fields_of(parsed_response(content))
    except TooLargeError:
        return base.Completion(text="", stop_reason="too_large")
    except UNREADABLE as problem:
        raise _no_answer(f"stdout is not valid JSON: {problem}; it begins with {content[:80]!r}") from None
    if "answer" not in fields:
        raise _no_answer(f'stdout is not a JSON object with "answer"; it begins with {content[:80]!r}')
    usage = base.fields_of(fields.get("usage"))
    return base.Completion(
        text=_as_text(fields["answer"]),
        usage=base.Usage(input_tokens=usage.get("input_tokens"), output_tokens=usage.get("output_tokens")),
        served_model=fields.get("model"),
        fingerprint=fields.get("version"),
    )


def _endpoint(endpoint: Endpoint, values: Mapping[str, str], settings: Settings) -> RemoteProvider:
    from skill_evaluator.providers.transport import PlainConnection  # aiohttp takes 0.1 s

    headers = {name: values[variable] for name, variable in endpoint.headers.items()}
    for variable in endpoint.headers.values():
        if not (values[variable].isascii() and values[variable].isprintable()):
            raise ConfigError(f"{variable}: remove the line break or non-ASCII character, not allowed in HTTP headers")

    def read(body: Any, _: Mapping[str, str]) -> base.Completion:
        answer = value_at(body, endpoint.answer)
        if answer is NO_VALUE:
            raise _no_answer(f"the response has no value at {endpoint.answer}")
        return base.Completion(text=_as_text(answer))

    connection = PlainConnection(endpoint.url, headers, settings.timeout_s, settings.limits.response_bytes)
    return RemoteProvider(connection, "", partial(_fill_placeholders, endpoint.body), read)


def _fill_placeholders(value: Any, request: base.Request) -> Any:
    """Replace each `{{NAME}}` in a JSON value by the text of the input NAME.

    A string that is only a placeholder becomes the input itself, with its JSON type. A file becomes a `data:` URL.
    """
    if isinstance(value, dict):
        return {name: _fill_placeholders(child, request) for name, child in value.items()}
    if isinstance(value, list):
        return [_fill_placeholders(child, request) for child in value]
    if not isinstance(value, str) or not request.inputs:
        return value
    names = re.compile(rf"\{{\{{\s*({'|'.join(map(re.escape, request.inputs))})\s*\}}\}}")
    if alone := names.fullmatch(value):
        return _endpoint_input(request.inputs[alone[1]])
    return names.sub(lambda name: _as_text(_endpoint_input(request.inputs[name[1]])), value)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _program_input(value: Any) -> Any:
    return {"path": str(value.path.absolute()), "media_type": value.media_type} if isinstance(value, File) else value


def _endpoint_input(value: Any) -> Any:
    return f"data:{value.media_type};base64,{file_placeholder(value)}" if isinstance(value, File) else value


def _refuse(model: Model, *_: object) -> NoReturn:
    raise ConfigError(f"provider 'program' of '{model.id}' in models.yaml: write `program` into a prompt.md instead")


sampling = partial(base.usual_sampling, refused=("temperature", "top_p"))
KIND = base.ProviderKind(open=_refuse, sampling=sampling, key_variables=(VARIABLES,), check=_refuse)
