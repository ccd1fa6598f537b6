"""Each template once: under the profile of the report's scan, or else the newest one that it was analysed under.

Every page shows it so; what other builds say stands only where builds are compared.
"""

from __future__ import annotations

from reports.builds import oldest_first
from reports.overview import Overview, chosen
from scanner.store.queries import TemplateSummary


def chosen_templates(overview: Overview) -> tuple[TemplateSummary, ...]:
    """The templates, each under one profile, in their order."""
    return chosen(overview.templates, overview.scan.scan.profile)


def chosen_profiles(overview: Overview) -> dict[str, str]:
    """The profile under which a template is shown, by SHA-256."""
    return {one.sha256: one.profile for one in chosen_templates(overview)}


def shown_profiles(overview: Overview) -> tuple[str, ...]:
    """The profiles under which templates are shown, oldest build first; that of the report's scan, if there is none."""
    return oldest_first(one.profile for one in chosen_templates(overview)) or (overview.scan.scan.profile,)
