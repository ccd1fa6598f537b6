"""The pages as data. Every page is a frozen dataclass, built by a pure function from what the database holds.

A page says nothing of when it was written, and only the index of the newest scan: so a page changes when what it shows
changes, and else its file is left alone.
"""

from reports.pages.capability import CapabilityPage, capability_pages
from reports.pages.changes import ChangesPage, changes_page
from reports.pages.combinations import CombinationsPage, combinations_page
from reports.pages.failures import FailuresPage, failures_page
from reports.pages.findings import FindingsPage, findings_page
from reports.pages.index import IndexPage, index_page
from reports.pages.models import ModelsPage, models_page
from reports.pages.template import TemplatePage, template_page

Page = (
    IndexPage
    | ModelsPage
    | FailuresPage
    | ChangesPage
    | FindingsPage
    | CapabilityPage
    | CombinationsPage
    | TemplatePage
)

__all__ = [
    "CapabilityPage",
    "ChangesPage",
    "CombinationsPage",
    "FailuresPage",
    "FindingsPage",
    "IndexPage",
    "ModelsPage",
    "Page",
    "TemplatePage",
    "capability_pages",
    "changes_page",
    "combinations_page",
    "failures_page",
    "findings_page",
    "index_page",
    "models_page",
    "template_page",
]
