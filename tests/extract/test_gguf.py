"""GGUF files through the public door: which templates they carry, what they say of themselves, what they are."""

from __future__ import annotations

from pathlib import Path

import gguf.constants
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scanner.extract import extract
from scanner.extract import gguf as extractor
from scanner.extract import split as split_files
from scanner.results import NOT_LOADED, ModelFile, Outcome, SourceKind, SpecialToken
from tests import gguf_builder as build
from tests.extract.helpers import extract_path, texts
from tests.gguf_builder import RawGguf, write_gguf
from tests.shared_data import shared_path

TEMPLATE = "tokenizer.chat_template"


def named(path: Path) -> ModelFile:
    return ModelFile(str(path), str(path), SourceKind.GGUF, 0, 0, "")


def test_the_default_template_and_all_metadata(tmp_path: Path) -> None:
    path = write_gguf(
        tmp_path / "m.gguf",
        "{{ messages }}",
        architecture="qwen2",
        strings={
            "general.name": "Tiny",
            "general.basename": "tiny",
            "general.size_label": "1B",
            "general.quantized_by": "somebody",
            "general.license": "mit",
            "general.repo_url": "https://example.org/tiny",
            "tokenizer.ggml.pre": "qwen2",
        },
        numbers={"general.file_type": 15, "qwen2.block_count": 24, "split.no": 0, "split.count": 2},
    )
    result = extract_path(path)
    assert result.outcome is Outcome.ANALYSED
    assert result.reason is None
    assert [(t.variant, t.source, t.origin) for t in result.templates] == [("default", b"{{ messages }}", TEMPLATE)]
    metadata = result.metadata
    assert (metadata.architecture, metadata.name, metadata.basename) == ("qwen2", "Tiny", "tiny")
    assert (metadata.size_label, metadata.file_type, metadata.quantized_by) == ("1B", "MOSTLY_Q4_K_M", "somebody")
    assert (metadata.license, metadata.repo_url) == ("mit", "https://example.org/tiny")
    assert (metadata.tokenizer_pre, metadata.block_count) == ("qwen2", 24)
    assert (metadata.split_no, metadata.split_count) == (0, 2)
    assert metadata.bos == SpecialToken(1, "<s>", True)
    assert metadata.eos == SpecialToken(2, "</s>", False)
    assert result.notes == (
        f"{NOT_LOADED}it is the first of 2 shards, and its name does not end in -00001-of-00002.gguf",
    )


@pytest.mark.parametrize("big_endian", [False, True])
def test_variants_come_default_first_then_by_name(tmp_path: Path, big_endian: bool) -> None:
    variants = {"tool_use": "t", "alpha": "a", "rag": "r"}
    result = extract_path(write_gguf(tmp_path / "m.gguf", "d", variants=variants, big_endian=big_endian))
    assert list(texts(result).items()) == [("default", b"d"), ("alpha", b"a"), ("rag", b"r"), ("tool_use", b"t")]
    assert result.metadata.eos.text == "</s>"
    assert result.notes == ()


def test_a_template_is_kept_as_bytes_whatever_they_are(tmp_path: Path) -> None:
    path = RawGguf(version=2).add(TEMPLATE, build.STRING, b"\xff{{ x }}\0\r\n").write(tmp_path / "m.gguf")
    assert texts(extract_path(path)) == {"default": b"\xff{{ x }}\0\r\n"}


def test_other_text_that_is_not_utf8_is_decoded_with_replacement(tmp_path: Path) -> None:
    raw = RawGguf().add("general.name", build.STRING, b"a\xffb").add_array(extractor.TOKENS, build.STRING, [b"\xc3"])
    result = extract_path(raw.add(extractor.BOS_ID, build.UINT32, 0).write(tmp_path / "m.gguf"))
    assert result.metadata.name == "a\N{REPLACEMENT CHARACTER}b"
    assert result.metadata.bos.text == "\N{REPLACEMENT CHARACTER}"


def test_without_template_keys(tmp_path: Path) -> None:
    result = extract_path(write_gguf(tmp_path / "m.gguf"))
    assert result.outcome is Outcome.NO_TEMPLATE
    assert result.reason == "no key tokenizer.chat_template"
    assert result.metadata.architecture == "llama"


def test_names_listed_and_names_carried_are_compared(tmp_path: Path) -> None:
    raw = RawGguf().add(f"{TEMPLATE}.rag", build.STRING, "r").add(TEMPLATE, build.STRING, "d")
    raw.add_array(extractor.CHAT_TEMPLATES, build.STRING, ["tool_use"])
    result = extract_path(raw.write(tmp_path / "m.gguf"))
    assert list(texts(result)) == ["default", "rag"]
    assert result.notes == (
        "tokenizer.chat_templates lists 'tool_use', but there is no key tokenizer.chat_template.tool_use",
        "tokenizer.chat_template.rag is not listed in tokenizer.chat_templates",
    )


def test_two_keys_for_the_default_variant(tmp_path: Path) -> None:
    raw = RawGguf().add(f"{TEMPLATE}.default", build.STRING, "other").add(TEMPLATE, build.STRING, "d")
    result = extract_path(raw.write(tmp_path / "m.gguf"))
    assert texts(result) == {"default": b"d", "default (tokenizer.chat_template.default)": b"other"}
    assert len(result.notes) == 1


def test_odd_keys_and_empty_templates_are_noted(tmp_path: Path) -> None:
    raw = RawGguf().add(TEMPLATE, build.STRING, "").add(f"{TEMPLATE}_old", build.STRING, "x")
    result = extract_path(raw.add(f"{TEMPLATE}.", build.STRING, "n").write(tmp_path / "m.gguf"))
    assert texts(result) == {"default": b"", "(no name)": b"n"}
    assert result.notes == (
        "variant 'default' is empty",
        "key 'tokenizer.chat_template_old' is no template that llama.cpp knows: not taken",
    )


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (RawGguf().add("general.type", build.STRING, "mmproj"), "projector"),
        (RawGguf().add("general.architecture", build.STRING, "clip"), "projector"),
        (RawGguf().add("general.type", build.STRING, "adapter"), "an adapter"),
        (RawGguf().add("general.type", build.STRING, "imatrix"), "an importance matrix"),
        (
            RawGguf().add("split.no", build.UINT16, 1).add("split.count", build.UINT16, 5),
            "later shard 2 of 5: the template stands in the first",
        ),
        (RawGguf().add("split.no", build.UINT16, 4), "later shard 5: "),
    ],
)
def test_what_has_no_template_by_its_kind_is_skipped(tmp_path: Path, raw: RawGguf, words: str) -> None:
    result = extract_path(raw.write(tmp_path / "m.gguf"))
    assert result.outcome is Outcome.SKIPPED
    assert result.reason is not None and words in result.reason


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the file is empty"),
        (b"GG", "it begins with b'GG'"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "Git LFS pointer"),
        (b"PK\x03\x04", "ZIP"),
        (b"\x40\0\0\0\0\0\0\0{}", "safetensors"),
        (b"tjgg\x03\0\0\0", "GGJT"),
        (b"<!DOCTYPE html>", "web page"),
        (b"\0\0\0\0", "it begins with b'\\x00\\x00\\x00\\x00'"),
    ],
)
def test_what_is_not_gguf_is_no_model(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(data)
    result = extract_path(path)
    assert result.outcome is Outcome.NOT_A_MODEL
    assert result.reason is not None and words in result.reason


def test_a_truncated_file_is_unreadable_with_the_place(tmp_path: Path) -> None:
    data = RawGguf().add(TEMPLATE, build.STRING, "x" * 100).to_bytes()
    path = tmp_path / "m.gguf"
    path.write_bytes(data[:-1])
    result = extract_path(path)
    assert result.outcome is Outcome.UNREADABLE
    assert (result.offset, result.expected) == (59, "a string of at most 99 bytes")
    assert result.reason == "m.gguf: at byte 59: expected a string of at most 99 bytes, found a length of 100"
    assert result.templates == ()


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (RawGguf().add(TEMPLATE, build.UINT8, 1), "a string for tokenizer.chat_template"),
        (RawGguf().add_array(TEMPLATE, build.STRING, ["x"]), "a string for tokenizer.chat_template"),
        (RawGguf().add(extractor.CHAT_TEMPLATES, build.STRING, "x"), "an array of strings for"),
        (RawGguf().add_array(extractor.CHAT_TEMPLATES, build.INT8, [1]), "an array of strings for"),
        (RawGguf().add(extractor.BOS_ID, build.STRING, "1"), "an integer for"),
        (RawGguf().add(extractor.EOS_ID, build.BOOL, True), "an integer for"),
        (RawGguf().add(extractor.ADD_BOS, build.UINT8, 1), "a boolean for"),
        (
            RawGguf().add_array(extractor.TOKENS, build.INT8, [1]).add(extractor.BOS_ID, build.UINT32, 0),
            "an array of strings for",
        ),
        (RawGguf().add("general.architecture", build.UINT32, 1), "a string for"),
        (RawGguf().add(extractor.MODEL, build.UINT32, 1), "a string for tokenizer.ggml.model"),
    ],
)
def test_a_wrong_type_is_unreadable_where_llama_cpp_needs_the_key(tmp_path: Path, raw: RawGguf, expected: str) -> None:
    result = extract_path(raw.add("z", build.BOOL, True).write(tmp_path / "m.gguf"))
    assert result.outcome is Outcome.UNREADABLE
    assert result.expected is not None and result.expected.startswith(expected)
    assert result.offset is not None


def test_a_wrong_type_is_a_note_where_it_only_describes(tmp_path: Path) -> None:
    raw = RawGguf().add(TEMPLATE, build.STRING, "x").add_array("general.license", build.STRING, ["mit"])
    result = extract_path(raw.write(tmp_path / "m.gguf"))
    assert result.outcome is Outcome.ANALYSED
    assert result.metadata.license is None
    assert result.notes == ("general.license is array of STRING, not a string: not taken",)


def test_tokens_that_are_not_there(tmp_path: Path) -> None:
    raw = RawGguf().add(extractor.BOS_ID, build.UINT32, 7).add(extractor.ADD_EOS, build.BOOL, True)
    alone = extract_path(raw.write(tmp_path / "alone.gguf"))
    assert alone.metadata.bos == SpecialToken(7, None, None)
    assert alone.metadata.eos == SpecialToken(None, None, True)
    raw.add_array(extractor.TOKENS, build.STRING, ["a", "b"])
    outside = extract_path(raw.write(tmp_path / "outside.gguf"))
    assert outside.metadata.bos == SpecialToken(7, None, None)
    assert outside.notes == ("tokenizer.ggml.bos_token_id is 7, outside the 2 tokens of tokenizer.ggml.tokens",)


def test_an_unknown_file_type_is_its_number(tmp_path: Path) -> None:
    result = extract_path(write_gguf(tmp_path / "m.gguf", "x", numbers={"general.file_type": 777}))
    assert result.metadata.file_type == "777"


def test_a_file_that_is_gone_or_no_file_is_a_result(tmp_path: Path) -> None:
    gone = extract(named(tmp_path / "gone.gguf"))
    assert gone.outcome is Outcome.UNREADABLE
    assert gone.reason == "gone.gguf: cannot be read: No such file or directory"
    folder = extract(named(tmp_path))
    assert folder.outcome is Outcome.UNREADABLE
    assert folder.expected == "a regular file"


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_file_is_a_result_and_no_template_is_half_read(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.gguf"
    template = "{{ messages[0].content }}"
    whole = write_gguf(path, template, variants={"rag": "r"}).read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    for text in texts(extract(named(path))).values():
        assert text in (template.encode(), b"r")
    changed = bytearray(whole)
    changed[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(changed)
    assert extract(named(path)).outcome in Outcome


def test_names_are_those_of_the_gguf_package() -> None:
    general, tokenizer, split = gguf.constants.Keys.General, gguf.constants.Keys.Tokenizer, gguf.constants.Keys.Split
    for name in ("TYPE", "ARCHITECTURE", "NAME", "BASENAME", "SIZE_LABEL", "FILE_TYPE", "QUANTIZED_BY", "LICENSE"):
        assert getattr(extractor, name) == getattr(general, name)
    assert (general.REPO_URL, general.SOURCE_REPO_URL) == (extractor.REPO_URL, extractor.SOURCE_REPO_URL)
    for name in ("MODEL", "PRE", "BOS_ID", "EOS_ID", "ADD_BOS", "ADD_EOS", "CHAT_TEMPLATE", "CHAT_TEMPLATES"):
        assert getattr(extractor, name) == getattr(tokenizer, name)
    assert (tokenizer.LIST, tokenizer.TOKEN_TYPE) == (extractor.TOKENS, extractor.KINDS)
    assert tokenizer.CHAT_TEMPLATE_N.format(name="x") == f"{extractor.CHAT_TEMPLATE}.x"
    assert (split.LLM_KV_SPLIT_NO, split.LLM_KV_SPLIT_COUNT) == (split_files.SPLIT_NO, split_files.SPLIT_COUNT)
    assert split.LLM_KV_SPLIT_TENSORS_COUNT == split_files.SPLIT_TENSORS
    assert gguf.constants.Keys.LLM.BLOCK_COUNT == extractor.BLOCK_COUNT
    file_types = {int(number): number.name for number in gguf.constants.LlamaFileType}
    # A newer package may know more: such a type is shown as its number until it is added here.
    assert {number: file_types.get(number) for number in extractor.FILE_TYPES} == extractor.FILE_TYPES


def test_a_real_vocabulary() -> None:
    result = extract_path(shared_path("corpus", "gguf", "ggml-vocab-command-r.gguf"))
    assert list(texts(result)) == ["default", "rag", "tool_use"]
    assert result.metadata.bos == SpecialToken(5, "<BOS_TOKEN>", True)
    assert result.metadata.eos == SpecialToken(255001, "<|END_OF_TURN_TOKEN|>", False)
    assert result.metadata.block_count == 40
    assert result.notes == ()
