"""Reports: what the database holds as static pages that open from a file."""

from reports.write import ReportSummary, write_report

__all__ = ["ReportSummary", "write_report"]
