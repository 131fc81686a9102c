"""The part of `site build` that shows stability audits: a page for each, the newest first."""

from pathlib import Path

from skill_evaluator.audit.findings.results import AuditResult, read_audit
from skill_evaluator.errors import AuditError
from skill_evaluator.site.writing import SiteFolder, refuse_page_name
from skill_evaluator.text import counted
from skill_evaluator.verdicts.history.baselines import AUDIT_RESULT

_LONGEST = 5_000  # characters of a sentence: the verdict on a cohort names many figures


def write_audits(site: SiteFolder, folder: Path) -> tuple[str | None, dict[str, str | None]]:
    """Write the page of each audit that was reported on; return the newest that can be read, and its models' grades."""
    results: dict[str, AuditResult] = {}
    paths = sorted(folder.glob(f"*/{AUDIT_RESULT}"), reverse=True)
    if not paths:
        site.write_data("audits", {"audits": []})
        return None, {}
    from skill_evaluator.audit.report.page import site_audit  # imports scipy

    for path in paths:
        name = path.parent.name
        try:
            refuse_page_name(name, AuditError)
            results[name] = read_audit(path)
        except AuditError as problem:
            site.note(f"audit {name}", problem)
        else:
            site.write_data(f"audits/{name}", site_audit(name, results[name]), _LONGEST)
    listed = [{"name": name, "models": counted(len(result.cohort), "model")} for name, result in results.items()]
    site.write_data("audits", {"audits": listed})
    newest = next(iter(results), None)
    return newest, {model.model: model.grade for model in results[newest].models} if newest is not None else {}
