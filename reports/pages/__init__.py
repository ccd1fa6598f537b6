"""The pages as data. Every page is a frozen dataclass, built by a pure function from what the database holds.

A page says nothing of when it was written, and only the index and the list of templates tell of the newest scan: so a
page changes when what it shows changes, and else its file is left alone.
"""

from reports.pages.capability import CapabilityPage, capability_pages
from reports.pages.changes import ChangesPage, changes_page
from reports.pages.combinations import CombinationsPage, combinations_page
from reports.pages.compare import ComparePage, compare_page
from reports.pages.failures import FailuresPage, failures_page
from reports.pages.families import FamiliesPage, families_page
from reports.pages.findings import FindingsPage, findings_page
from reports.pages.index import IndexPage, index_page
from reports.pages.models import ModelsPage, models_page
from reports.pages.outliers import OutliersPage, outliers_page
from reports.pages.template import TemplatePage, template_page
from reports.pages.templates import TemplatesPage, templates_page

Page = (
    IndexPage
    | OutliersPage
    | TemplatesPage
    | FamiliesPage
    | ModelsPage
    | FailuresPage
    | ChangesPage
    | FindingsPage
    | CapabilityPage
    | CombinationsPage
    | ComparePage
    | TemplatePage
)

__all__ = [
    "CapabilityPage",
    "ChangesPage",
    "CombinationsPage",
    "ComparePage",
    "FailuresPage",
    "FamiliesPage",
    "FindingsPage",
    "IndexPage",
    "ModelsPage",
    "OutliersPage",
    "Page",
    "TemplatePage",
    "TemplatesPage",
    "capability_pages",
    "changes_page",
    "combinations_page",
    "compare_page",
    "failures_page",
    "families_page",
    "findings_page",
    "index_page",
    "models_page",
    "outliers_page",
    "template_page",
    "templates_page",
]
