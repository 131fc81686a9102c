"""The commands that judge what is recorded: compare, history."""

from pathlib import Path
from typing import Annotated

import typer

from skill_evaluator.cli.options import Components, Config, Form, Format, HistoryFormat, app


@app.command(
    epilog="Examples: skill-evaluator compare receipt-extraction · "
    "skill-evaluator compare receipt-extraction --baseline 1.2.0 --model gpt-5 · "
    "skill-evaluator compare --baseline old.json --candidate new.json · "
    "skill-evaluator compare receipt-extraction --calibrate 1.2.0 --model gpt-5"
)
def compare(
    skill: Annotated[
        str | None, typer.Argument(help="The component; not needed when both records are named by their files.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="VERSION|RUN|FILE", help="Default: the newest complete lower version."),
    ] = None,
    candidate: Annotated[
        str | None,
        typer.Option("--candidate", metavar="VERSION|RUN|FILE", help="Default: the newest of the highest version."),
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", metavar="ID", help="Only this model; repeatable.")
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option("--fail-on", metavar="VERDICT,...", help="Verdicts that fail; default: policy of settings.yaml."),
    ] = None,
    calibrate: Annotated[
        str | None,
        typer.Option(
            "--calibrate",
            metavar="RUN|VERSION|FILE",
            help="Instead: measure false alarms and power of this gate on random halves of a run's replicates.",
        ),
    ] = None,
    components: Components = Path("components"),
    config: Config = Path(".evaluator"),
    form: Form = Format.text,
) -> None:
    """Say whether a version is worse than the recorded one, where, and how sure that is; makes no call.

    Exit code: 0 fine, 3 regressed, 4 inconclusive or incomparable if --fail-on names it.
    """
    if calibrate is not None:
        from skill_evaluator.commands import compare as calibration

        raise typer.Exit(
            calibration.calibrate(
                calibration.CalibrationOptions(
                    run=calibrate,
                    skill=skill,
                    models=tuple(model or ()),
                    components=components,
                    config=config,
                    format=form.value,
                )
            )
        )
    from skill_evaluator.commands import compare as command

    options = command.CompareOptions(
        skill=skill,
        baseline=baseline,
        candidate=candidate,
        models=tuple(model or ()),
        fail_on=tuple(fail_on or ()),
        components=components,
        config=config,
        format=form.value,
    )
    raise typer.Exit(command.compare(options))


@app.command(
    epilog="Examples: skill-evaluator history receipt-extraction · "
    "skill-evaluator history receipt-extraction --format junit > history.xml"
)
def history(
    skill: Annotated[str, typer.Argument(help="The component: a folder name under --components.")],
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", metavar="ID", help="Only this model; repeatable.")
    ] = None,
    components: Components = Path("components"),
    config: Config = Path(".evaluator"),
    form: Annotated[
        HistoryFormat, typer.Option("--format", help="How to print it (on stdout); csv: every run, junit: every step.")
    ] = HistoryFormat.text,
) -> None:
    """Show every recorded version beside every model, each judged against the one before, and what made it worse.

    Exit code: 0, whatever the verdicts are.
    """
    from skill_evaluator.commands import history as command

    options = command.HistoryOptions(
        skill=skill, models=tuple(model or ()), components=components, config=config, format=form.value
    )
    raise typer.Exit(command.history(options))
