"""The demo collection is real GGUF, small, the same each time, and covers the outcomes it is there to show."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from scanner import oracle
from scanner.demo import collection
from tests import cases_format, regenerate

EXPECTED: dict[str, dict[str, Any]] = json.loads(regenerate.CAPABILITIES.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("demo")
    collection.make_collection(directory)
    return directory


def contents(directory: Path) -> dict[str, bytes]:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files}


def text_of(path: Path, key: str) -> str | None:
    from gguf import GGUFReader

    field = GGUFReader(path).get_field(key)
    return None if field is None else str(field.contents())


def test_the_same_bytes_each_time_and_few_of_them(made: Path, tmp_path: Path) -> None:
    began = time.monotonic()
    collection.make_collection(tmp_path)
    assert time.monotonic() - began < 3
    assert contents(tmp_path) == contents(made)
    assert sum(map(len, contents(made).values())) < 1_000_000


def test_making_it_again_in_the_same_place_changes_nothing(tmp_path: Path) -> None:
    collection.make_collection(tmp_path)
    before = contents(tmp_path)
    collection.make_collection(tmp_path)
    assert contents(tmp_path) == before


def test_files_carry_template_and_metadata(made: Path) -> None:
    path = made / "gguf" / "Qanat-4B-Q8_0.gguf"
    assert text_of(path, "tokenizer.chat_template") == collection.templates()["thinking"].decode()
    assert text_of(path, "general.basename") == "Qanat"
    assert text_of(path, "general.size_label") == "4B"
    assert text_of(path, "general.license") == "apache-2.0"
    assert text_of(path, "general.quantized_by") == "capscan-demo"


def test_quantizations_share_a_template(made: Path) -> None:
    paths = sorted((made / "gguf").glob("Halyard-*.gguf"))
    assert len(paths) == 3
    assert len({text_of(path, "tokenizer.chat_template") for path in paths}) == 1
    assert len({text_of(path, "general.file_type") for path in paths}) == 3


def test_variants_are_listed_and_carried(made: Path) -> None:
    path = made / "gguf" / "Commander-35B-Q4_K_M.gguf"
    assert text_of(path, "tokenizer.chat_templates") == "['tool_use', 'rag']"
    assert text_of(path, "tokenizer.chat_template.tool_use") == collection.templates()["turns-tool-use"].decode()
    assert text_of(path, "tokenizer.chat_template.rag") == collection.templates()["turns-rag"].decode()


def test_special_files(made: Path) -> None:
    folder = made / "gguf"
    assert text_of(folder / "mmproj-Garnet-1B-F16.gguf", "general.type") == "mmproj"
    assert text_of(folder / "Deepwell-14B-Q8_0-00002-of-00003.gguf", "split.no") == "1"
    assert text_of(folder / "Basalt-3B-Q4_K_M.gguf", "tokenizer.chat_template") is None
    with pytest.raises(IndexError, match="out of bounds"):
        text_of(folder / "Harbour-1B-Q8_0.gguf", "tokenizer.chat_template")


def test_directories_hold_templates_in_every_place_a_hub_has(made: Path) -> None:
    root = made / "huggingface"
    sources = collection.templates()
    configuration = json.loads((root / "Qanat-4B" / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert configuration["chat_template"] == sources["thinking"].decode()
    named = json.loads((root / "Lantern-7B" / "tokenizer_config.json").read_text(encoding="utf-8"))["chat_template"]
    assert [entry["name"] for entry in named] == ["default", "tool_use"]
    additional = root / "Commander-35B" / "additional_chat_templates"
    assert (additional / "tool_use.jinja").read_bytes() == sources["turns-tool-use"]
    assert (root / "Mosaic-VL-2B" / "chat_template.jinja").read_bytes() == sources["parts-only"]


def test_every_template_is_used_and_has_an_expectation(made: Path) -> None:
    everything = b"\n".join(contents(made).values())
    for name, source in collection.templates().items():
        assert source in everything or json.dumps(source.decode(), ensure_ascii=False).encode() in everything, name
    assert sorted(EXPECTED) == sorted(collection.templates())


def test_what_the_demo_is_there_to_show_is_there() -> None:
    flags = {name: entry["capabilities"] for name, entry in EXPECTED.items() if "capabilities" in entry}
    assert EXPECTED["not-for-llama-cpp"] == {"refused": "Unknown statement: raw"}
    assert "excluded" in EXPECTED["endless"]
    assert not flags["no-system"]["supports_system_role"]
    assert flags["silent-system"]["supports_system_role"]
    assert not flags["parts-only"]["supports_string_content"]
    assert flags["strict-effort"]["supports_reasoning_effort"]
    assert flags["keeps-reasoning"]["supports_preserve_reasoning"]
    assert not flags["header-ids"]["supports_parallel_tool_calls"]


def test_case_files_read_back_as_they_are_written() -> None:
    paths = sorted(cases_format.FOLDER.glob("*.txt"))
    assert len(paths) >= 28
    for path in paths:
        text = path.read_text(encoding="utf-8")
        assert cases_format.dump(cases_format.parse(text)) == text, path.name
        assert all(case.output is not None or case.error for case in cases_format.load(path)), path.name


@pytest.mark.parametrize("name", ["plain-chatml", "strict-effort", "not-for-llama-cpp"])
@pytest.mark.skipif(bool(oracle.available()), reason=oracle.available() or "")
def test_expectations_are_the_engines(name: str) -> None:
    answer = oracle.ask(oracle.Question(collection.templates()[name]))
    assert (answer.capabilities if answer.started else answer.reason) in EXPECTED[name].values()
