"""Profiles held against what four real builds reported, and against the table in `docs/profiles.md`."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from scanner.pipeline import analyse_template
from scanner.probe.profiles import PROFILES
from tests.shared_data import shared_path

DOCS = (Path(__file__).resolve().parent.parent / "docs" / "profiles.md").read_text(encoding="utf-8")
COUNTS = {
    name: (int(equal), int(refused), int(different))
    for name, equal, refused, different in re.findall(
        r"^\| `(b\d+)` \| (\d+) \| (\d+) \| (\d+) \|$", DOCS, re.MULTILINE
    )
}
NAMED: dict[str, dict[str, str]] = defaultdict(dict)
for profile, template, what in re.findall(r"^\| `(b\d+)` \| `(\S+\.jinja)` \| (.+?) \|", DOCS, re.MULTILINE):
    NAMED[profile][template] = what


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_says_what_its_builds_report_but_for_what_the_docs_name(profile: str) -> None:
    folder = shared_path("corpus", "templates")
    counts: Counter[str] = Counter()
    unexplained = []
    for line in shared_path("golden", "builds.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["build"] != profile:
            continue
        capabilities = analyse_template((folder / record["template"]).read_bytes(), profile=profile).capabilities
        assert capabilities is not None
        told = record["caps"]
        outcome = "refused" if told is None else "equal" if capabilities.as_llama_cpp() == told else "different"
        counts[outcome] += 1
        if outcome != "equal" and record["template"] not in NAMED[profile]:
            unexplained.append(record["template"])
        if outcome == "different":
            changed = {name for name, holds in capabilities.as_llama_cpp().items() if told.get(name) is not holds}
            said = NAMED[profile].get(record["template"], "")
            assert {name.removeprefix("supports_") for name in changed} == set(re.findall(r"`(\w+)`", said))
    assert unexplained == []
    assert (counts["equal"], counts["refused"], counts["different"]) == COUNTS[profile]


def test_every_profile_is_in_the_docs() -> None:
    assert list(COUNTS) == list(PROFILES)
    assert [name for name in PROFILES if f"| `{name}` | b" in DOCS] == list(PROFILES)
