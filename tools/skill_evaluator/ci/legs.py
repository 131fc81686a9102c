"""The keys that models.yaml names → the jobs of the workflows that are given them, one key each.

`evaluate.yml` and `audit.yml` have a job for models that need no key. After it stand its copies, one for each key: a
repository secret cannot be chosen by an expression without all secrets being on the runner.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from skill_evaluator.ci.matrix import REST, environment_of, secrets_for
from skill_evaluator.errors import ConfigError
from skill_evaluator.files import read_text
from skill_evaluator.providers import Configuration

COMMAND = "skill-evaluator init --workflows"
WORKFLOWS = Path(".github", "workflows")
_CALLS = re.compile(r"^    uses: [$.]/\.github/workflows/leg\.yml$", re.MULTILINE)  # older servers know no $/
_READS = "      contents: read\n"
_MADE = f"# made from models.yaml by `{COMMAND}`"
IDENTITY = "id-token"  # stands among names of secrets where models are asked with the job's identity instead

Secrets = Mapping[str, Sequence[str]]


def secrets_of(configuration: Configuration) -> Secrets:
    """Return the names of the secrets that may hold each environment's key, by environment.

    Models that are asked without a key are left out. Raise ConfigError where one environment stands for two keys.
    """
    secrets: dict[str, tuple[str, ...]] = {}
    for model in configuration.models:
        kind = configuration.kinds[model.provider]
        variables, environment = secrets_for(model, kind), environment_of(model, kind)
        if model.auth == "oidc":
            variables = (IDENTITY,)
        elif not variables:
            continue
        others = secrets.get(environment, ())
        keys = [name for name in others if name != IDENTITY]
        if keys and model.auth == "key" and set(keys).isdisjoint(variables):
            raise ConfigError(
                f"models.yaml: {keys[0]} and {variables[0]} (of '{model.id}') are two keys, and both would be of the "
                f"environment {environment}; give one of them another api_key_env"
            )
        secrets[environment] = tuple(dict.fromkeys((*others, *variables)))
    return dict(sorted(secrets.items()))


def with_legs(text: str, secrets: Secrets) -> str:
    """Return a workflow with a job for each key after every job that calls the leg; as it is if none does.

    What was made before is replaced. The rest stays as somebody may have edited it, and its jobs are what is copied.
    """
    head, mark, body = text.partition("\njobs:\n")
    jobs = [job for job in re.split(r"(?m)^(?=  [\w-]+:)", body) if _MADE not in job.partition("\n")[0]]
    copied = [_name(job) for job in jobs if _CALLS.search(job)]
    if not copied:
        return text
    legs = {environment.removeprefix("eval-"): environment for environment in secrets}
    told = f"LEGS: {' '.join(secrets)} {_MADE}" if secrets else 'LEGS: ""'
    body = ""
    for each in jobs:
        job = re.sub(r"(?m)\bLEGS: .*$", told, each)
        job = re.sub(r"(?m)^(    needs: )\[(.*)\]$", lambda found: found[1] + _needs(found[2], copied, legs), job)
        body += job
        if _name(job) in copied:
            body += "".join(_copy(job, leg, environment, secrets[environment]) for leg, environment in legs.items())
    kept = "".join(line for line in head.splitlines(keepends=True) if not line.endswith(f"{_MADE}\n"))
    names = dict.fromkeys(name for each in secrets.values() for name in each if name != IDENTITY)
    ours = [name for name in names if not name.startswith("GITHUB_")]  # those are there without being handed over
    declared = "".join(f"      {name}: {{required: false}} {_MADE}\n" for name in ours)
    return kept.replace("\n    secrets:\n", f"\n    secrets:\n{declared}") + mark + body


def stale_workflows(config: Path, secrets: Secrets) -> dict[Path, str]:
    """Return the workflows beside a folder of settings whose jobs are not those of its models, and what to do."""
    texts = {path: read_text(path) for path in sorted((config.parent / WORKFLOWS).glob("*.yml"))}
    return {
        path: f"{path.as_posix()} has not the jobs that the keys of models.yaml ask for: {COMMAND}"
        for path, text in texts.items()
        if with_legs(text, secrets) != text
    }


def _name(job: str) -> str:
    return job.partition(":")[0].strip()


def _copy(job: str, leg: str, environment: str, names: Sequence[str]) -> str:
    """Return the job of one key; it alone sees the secrets of these names, or may have an identity."""
    _, _, body = job.partition("\n")
    body = re.sub(r"(?m)^(    name: .*)$", rf"\1 ({leg})", body, count=1)
    body = body.replace(f".{REST}", f".{environment}")
    if IDENTITY in names:
        body = body.replace(_READS, f"{_READS}      id-token: write # to ask without a key\n")
    keys = " || ".join(f"secrets.{name}" for name in names if name != IDENTITY)
    body = body.replace("secrets.PROVIDER_API_KEY", keys or "secrets.PROVIDER_API_KEY")
    return f"  {_name(job)}-{leg}: {_MADE}\n{body}"


def _needs(names: str, copied: Sequence[str], legs: Mapping[str, str]) -> str:
    """Return a list of jobs in which each copied one stands with its copies."""
    listed: list[str] = []
    for name in names.split(", "):
        if not name.startswith(tuple(f"{each}-" for each in copied)):
            listed += [name, *(f"{name}-{leg}" for leg in legs if name in copied)]
    return f"[{', '.join(listed)}]"
