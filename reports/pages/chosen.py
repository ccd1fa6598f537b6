"""Each template once: under the profile of the report's scan, or else the newest one that it was analysed under."""

from __future__ import annotations

from collections.abc import Sequence

from reports.builds import oldest_first
from reports.overview import Overview
from scanner.store.queries import TemplateSummary


def chosen_templates(overview: Overview) -> tuple[TemplateSummary, ...]:
    """The templates, each under one profile, in their order."""
    profiles = chosen_profiles(overview)
    return tuple(one for one in overview.templates if profiles[one.sha256] == one.profile)


def chosen_profiles(overview: Overview) -> dict[str, str]:
    """The profile under which a template is shown, by SHA-256."""
    analysed: dict[str, list[str]] = {}
    for one in overview.templates:
        analysed.setdefault(one.sha256, []).append(one.profile)
    return {sha256: _preferred(profiles, overview.scan.scan.profile) for sha256, profiles in analysed.items()}


def _preferred(profiles: Sequence[str], wanted: str) -> str:
    return wanted if wanted in profiles else oldest_first(profiles)[-1]
