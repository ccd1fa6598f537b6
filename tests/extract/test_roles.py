"""What a file is that is no model of its own, and that it is not told to be a model without a template."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from scanner.extract import roles
from scanner.extract.roles import role_of
from scanner.results import Outcome, Role
from tests import gguf_builder as build
from tests.extract.helpers import extract_path
from tests.gguf_builder import RawGguf, write_gguf
from tests.shared_data import shared_path

EXTRACT = Path(roles.__file__).parent


def role(
    file_name: str = "m.gguf",
    *,
    kind: str | None = "model",
    architecture: str | None = "llama",
    name: str | None = None,
    has_tensors: bool = True,
    has_tokens: bool = True,
) -> Role | None:
    return role_of(
        file_name,
        kind=kind,
        architecture=architecture,
        name=name,
        has_tensors=has_tensors,
        has_tokens=has_tokens,
    )


def test_the_keys_decide_before_the_names() -> None:
    assert role(kind="mmproj") is Role.PROJECTOR
    assert role(kind=None, architecture="clip") is Role.PROJECTOR
    assert role(kind="adapter", has_tokens=False) is Role.ADAPTER
    assert role(kind="imatrix", architecture=None) is Role.IMATRIX
    assert role("mmproj-m.gguf") is None
    assert role("mmproj-m.gguf", kind="adapter") is Role.ADAPTER
    assert role(kind="something-new") is None


def test_a_name_decides_where_the_keys_say_nothing() -> None:
    assert role("mmproj-m-f16.gguf", kind=None, architecture=None) is Role.PROJECTOR
    assert role("m.gguf", kind=None, architecture=None) is None


def test_no_tensors_and_tokens_are_a_vocabulary() -> None:
    assert role(has_tensors=False) is Role.VOCABULARY
    assert role(has_tensors=False, has_tokens=False) is None


@pytest.mark.parametrize(
    ("file_name", "name", "draft"),
    [
        ("Qwen2.5-0.5B-draft-Q4_0.gguf", None, True),
        ("DeepSeek-R1-DRAFT-0.6B.gguf", None, True),
        ("m_draft.gguf", None, True),
        ("mtp-Qwen3-27B-v1.0-Q4_K_M.gguf", None, True),
        ("m.gguf", "Qwen 0.5B Draft", True),
        ("draft-model.gguf", None, True),
        ("drafter.gguf", None, False),
        ("overdraft.gguf", None, False),
        ("Draftsman-7B.gguf", "Draftsman", False),
        ("MiMo-7B-MTP-Q4.gguf", None, False),
        ("m.gguf", None, False),
    ],
)
def test_a_draft_says_so_in_a_word_of_its_own(file_name: str, name: str | None, draft: bool) -> None:
    assert (role(file_name, name=name) is Role.DRAFT) is draft


@pytest.mark.parametrize(
    ("name", "raw", "expected"),
    [
        ("mmproj-m.gguf", RawGguf().add("general.type", build.STRING, "mmproj"), Role.PROJECTOR),
        ("m.gguf", RawGguf(tensor_count=1).add("general.architecture", build.STRING, "clip"), Role.PROJECTOR),
        ("m-LoRA.gguf", RawGguf().add("general.type", build.STRING, "adapter"), Role.ADAPTER),
        ("m.imatrix.gguf", RawGguf().add("general.type", build.STRING, "imatrix"), Role.IMATRIX),
        ("m-vocab.gguf", RawGguf().add("tokenizer.ggml.model", build.STRING, "llama"), None),
        (
            "m-vocab.gguf",
            RawGguf()
            .add("general.architecture", build.STRING, "llama")
            .add_array("tokenizer.ggml.tokens", build.STRING, ["a"]),
            Role.VOCABULARY,
        ),
        ("m-draft.gguf", RawGguf(tensor_count=1).add("general.architecture", build.STRING, "llama"), Role.DRAFT),
    ],
)
def test_without_a_template_it_is_skipped_for_what_it_is(
    tmp_path: Path, name: str, raw: RawGguf, expected: Role | None
) -> None:
    result = extract_path(raw.write(tmp_path / name))
    assert result.metadata.role == expected
    assert result.outcome is (Outcome.NO_TEMPLATE if expected is None else Outcome.SKIPPED)
    if expected is not None:
        assert result.reason == roles.WHY_NO_TEMPLATE[expected]


def test_a_vocabulary_and_a_draft_keep_their_templates(tmp_path: Path) -> None:
    vocabulary = extract_path(write_gguf(tmp_path / "v.gguf", "{{ a }}", with_tensor=False))
    draft = extract_path(write_gguf(tmp_path / "m-draft.gguf", "{{ a }}"))
    assert (vocabulary.outcome, vocabulary.metadata.role) == (Outcome.ANALYSED, Role.VOCABULARY)
    assert (draft.outcome, draft.metadata.role) == (Outcome.ANALYSED, Role.DRAFT)


def test_a_template_that_llama_cpp_does_not_read_is_said(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "lora.gguf", "{{ a }}", strings={"general.type": "adapter"})
    result = extract_path(path)
    assert (result.outcome, result.templates) == (Outcome.SKIPPED, ())
    assert result.notes == ("it carries a chat template, which llama.cpp does not read",)


def test_every_role_has_its_reason() -> None:
    assert set(roles.WHY_NO_TEMPLATE) == set(Role)


def test_the_types_are_those_of_the_library() -> None:
    from gguf.constants import GGUFType

    known = {value for name, value in vars(GGUFType).items() if name.isupper()}
    assert known == {"model", "adapter", "imatrix", "mmproj"}


def test_the_vocabularies_of_llama_cpp() -> None:
    paths = sorted(shared_path("corpus", "gguf").glob("ggml-vocab-*.gguf"))
    results = {path.stem.removeprefix("ggml-vocab-"): extract_path(path) for path in paths}
    assert {result.metadata.role for result in results.values()} == {Role.VOCABULARY}
    assert results["llama-spm"].outcome is Outcome.SKIPPED
    assert results["qwen2"].outcome is Outcome.ANALYSED


# -- Hugging Face ------------------------------------------------------------------------------------------------------


def test_an_adapter_folder_is_found_and_named(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA"}))
    (tmp_path / "adapter_model.safetensors").write_bytes(b"\0" * 16)
    result = extract_path(tmp_path)
    assert (result.outcome, result.metadata.role) == (Outcome.SKIPPED, Role.ADAPTER)
    (tmp_path / "chat_template.jinja").write_text("{{ a }}")
    result = extract_path(tmp_path)
    assert (result.outcome, result.metadata.role) == (Outcome.ANALYSED, Role.ADAPTER)


@pytest.mark.parametrize("weights", ["model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"])
def test_a_model_with_an_adapter_beside_it_is_a_model(tmp_path: Path, weights: str) -> None:
    for name in ("adapter_config.json", "tokenizer_config.json", weights):
        (tmp_path / name).write_text("{}")
    result = extract_path(tmp_path)
    assert (result.outcome, result.metadata.role) == (Outcome.NO_TEMPLATE, None)


# -- reading -----------------------------------------------------------------------------------------------------------


def test_nothing_but_the_range_reader_reads_bytes() -> None:
    openers = {"open", "read_bytes", "read_text", "fdopen", "memmap", "mmap", "fromfile"}
    for path in sorted(EXTRACT.glob("*.py")):
        calls = [node.func for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
        names = {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}
        assert names & openers == ({"open"} if path.name == "source.py" else set()), path.name
