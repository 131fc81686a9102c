"""The part of `site build` that shows stability audits: a page for each, the newest first."""

from pathlib import Path

from skill_evaluator.audit.findings.results import AuditResult, read_audit
from skill_evaluator.display.safe_text import abridged, visible
from skill_evaluator.errors import AuditError
from skill_evaluator.identifiers import is_file_name
from skill_evaluator.reports.site.writing import SiteFolder
from skill_evaluator.verdicts.rewording import AUDIT_RESULT

_LONGEST = 5_000  # characters of a sentence: the verdict on a cohort names many figures
_LONGEST_NAME = 200  # bytes
_NO_NAME = f"rename its folder; a page can be called by letters, digits, '@._+-' alone, {_LONGEST_NAME} bytes at most"


def write_audits(site: SiteFolder, folder: Path) -> tuple[str | None, dict[str, str | None]]:
    """Write the page of each audit that was reported on; return the newest that can be read, and its models' grades."""
    results: dict[str, AuditResult] = {}
    paths = sorted(folder.glob(f"*/{AUDIT_RESULT}"), reverse=True)
    if not paths:
        site.write_data("audits", {"audits": []})
        return None, {}
    from skill_evaluator.reports.site.audit import audit_page, audit_rows  # imports scipy

    for path in paths:
        name = path.parent.name
        if not is_file_name(name) or len(name.encode()) > _LONGEST_NAME:
            site.note(f"audit {abridged(visible(name))}", AuditError(_NO_NAME))
            continue
        try:
            results[name] = read_audit(path)
        except AuditError as problem:
            site.note(f"audit {name}", problem)
        else:
            site.write_data(f"audits/{name}", audit_page(name, results[name]), _LONGEST)
    site.write_data("audits", {"audits": [audit_rows(name, result) for name, result in results.items()]})
    newest = next(iter(results), None)
    return newest, {model.model: model.grade for model in results[newest].models} if newest is not None else {}
