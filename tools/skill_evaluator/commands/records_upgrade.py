"""`skill-evaluator records upgrade`: the rows of old leaderboards in today's shape. Makes no call."""

from skill_evaluator.commands.options import ComponentsOption, Names, flag, options
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import EXIT_OK, LeaderboardError
from skill_evaluator.records.upgrading import upgrade_leaderboard
from skill_evaluator.text import counted

EXAMPLES = ("skill-evaluator records upgrade --dry-run", "skill-evaluator records upgrade <component>")


@options
class RecordsUpgradeOptions(ComponentsOption):
    """The options of `records upgrade`."""

    names: Names = ()
    dry_run: bool = flag("Write nothing: say what would be rewritten.")


def records_upgrade(options: RecordsUpgradeOptions) -> int:
    """Rewrite the rows of old leaderboards in today's short shape; each only where its record holds the rest.

    A row without such a record stays as it is, and is named. Doing it again changes nothing.
    """
    names = options.names or sorted(path.parent.name for path in options.components.glob("*/leaderboard.json"))
    if not names:
        raise LeaderboardError(f"{options.components} holds no leaderboard; name the folder with --components DIR")
    would = "would be " if options.dry_run else ""
    for name in names:
        path = options.components / name / "leaderboard.json"
        upgrade = upgrade_leaderboard(path, name, write=not options.dry_run)
        sizes = f", {upgrade.bytes_before:,} → {upgrade.bytes_after:,} bytes" if upgrade.rewritten else ""
        print(visible(f"{path}: {counted(upgrade.rewritten, 'row')} {would}rewritten{sizes}"))
        for run_id, why in upgrade.kept.items():
            print(visible(f"  row '{run_id}' stays as it is: {why}"))
    return EXIT_OK
