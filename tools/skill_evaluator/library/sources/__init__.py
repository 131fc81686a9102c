"""The formats that components are read from in place, by the word that `sources` in settings.yaml has for each."""

from collections.abc import Mapping

from skill_evaluator.library.sources.skills import SKILLS
from skill_evaluator.library.sources.tree import Source

SOURCES: Mapping[str, Source] = {"skills": SKILLS}
