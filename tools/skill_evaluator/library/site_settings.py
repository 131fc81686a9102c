"""`site` in settings.yaml: where the site is published, and what of a component may be on it.

Its own module beside config.py, which imports it, because what is private is decided here and nowhere else.
"""

from collections.abc import Iterable

from pydantic import Field

from skill_evaluator.files import StrictModel


class ComponentSite(StrictModel):
    """What a site that `site build` makes shows of one component."""

    documents: bool = Field(default=False, description="also documents, ground truths and raw answers")


class SiteSettings(StrictModel):
    """The site that is built of records; `address` is where it is published."""

    address: str | None = Field(
        default=None, pattern=r"^https?://[^\s<>()\[\]\"']+$", description="Markdown pages link what they name to it"
    )
    components: dict[str, ComponentSite] = {}

    def publishes_documents(self, skill: str) -> bool:
        """Return whether documents, ground truths and raw answers of a component may be in a build."""
        return self.components.get(skill, ComponentSite()).documents

    def with_documents(self, skills: Iterable[str]) -> "SiteSettings":
        """Return the same with the documents, ground truths and raw answers of some components, for one's own eyes."""
        return self.model_copy(update={"components": dict.fromkeys(skills, ComponentSite(documents=True))})
