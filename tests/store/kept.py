"""Makes the database file that is kept of each schema revision, for the tests that upgrade it later.

Run it once, with the revision's own code: `python -m tests.store.kept`.
"""

from __future__ import annotations

from pathlib import Path

from scanner.results import Severity
from scanner.store import migrate
from scanner.store.session import open_database
from tests.store import examples

FOLDER = Path(__file__).parent.parent / "databases"
SOURCE = b"{{ messages[0].content }}\xff"


def make(path: Path) -> None:
    """Writes a new database with a little of everything."""
    engine = open_database(str(path))
    migrate.ensure_current(engine, create=True)
    first = examples.whole_file("/models/whole.gguf", SOURCE)
    broken = examples.template(b"{% if")
    clock = examples.Clock()
    for fingerprint in ("1", "2"):
        writer = examples.writer(engine, clock)
        writer.begin(["/models"])
        writer.add_file(first)
        writer.add_file(examples.with_templates("/models/broken.gguf", broken, fingerprint=fingerprint))
        writer.add_file(examples.without_template("/models/none.gguf"))
        writer.add_file(examples.unreadable("/models/short.gguf"))
        writer.add_file(examples.named_file("/models/blobs/sha256-01"))
        writer.add_analysis(examples.whole_analysis(first.templates[0].sha256))
        writer.add_analysis(examples.not_parseable(broken.sha256))
        writer.add_file_findings("/models/whole.gguf", [examples.finding(Severity.WARNING, "variants disagree")])
        clock.move(60)
        writer.finish("finished")
    engine.dispose()


if __name__ == "__main__":
    (FOLDER / f"{migrate.head()}.sqlite").unlink(missing_ok=True)
    make(FOLDER / f"{migrate.head()}.sqlite")
