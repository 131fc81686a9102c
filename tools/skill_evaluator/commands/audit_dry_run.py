"""`audit run --dry-run`: everything but the calls. Needs no key, imports no vendor SDK, writes nothing."""

from collections.abc import Callable, Mapping
from dataclasses import asdict

from skill_evaluator.audit.report.size import AskedModel, AuditSize, print_size, warn_of_doubts
from skill_evaluator.audit.run.runs import Cells
from skill_evaluator.commands.audit_inputs import AuditInputs, AuditOptions, new_audit
from skill_evaluator.errors import EXIT_OK, AuditError
from skill_evaluator.library.config import Model
from skill_evaluator.providers import key_note
from skill_evaluator.runner.prices import InputSize, estimate
from skill_evaluator.runner.schedule import Shard


def dry_run(options: AuditOptions) -> int:
    """Check every input and print what the audit would take; returns the exit code."""
    if options.resume is not None or options.plan is not None:
        raise AuditError("--dry-run is of a new audit: it does not go with --resume or --plan")
    inputs = new_audit(options, keyed=False)
    shard = Shard.parse(options.shard) if options.shard else None
    sizes = Cells(inputs.materials).sizes(inputs.manifest.cells(shard))
    models = asked_models(inputs, sizes, lambda model: key_note(model, inputs.kinds[model.provider]))
    closing = "dry run: no call was made, nothing was written"
    print_size(AuditSize(audit=inputs.manifest, models=models, noted="key", closing=closing), options.format)
    warn_of_doubts(inputs.manifest)
    return EXIT_OK


def asked_models(inputs: AuditInputs, sizes: Mapping[str, InputSize], note: Callable[[Model], str]) -> list[AskedModel]:
    """What cells of these sizes take of each model."""
    return [
        AskedModel(
            model_id=model.id,
            provider=model.provider,
            note=note(model),
            **asdict(estimate(sizes, model, inputs.kinds[model.provider], inputs.manifest.replicates)),
        )
        for model in inputs.models
    ]
