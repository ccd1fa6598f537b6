"""Model directories: every place a template may stand in, which one wins, and hostile JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scanner import discover
from scanner.extract import extract, huggingface
from scanner.results import FileResult, ModelFile, Outcome, SourceKind, SpecialToken
from tests.extract.helpers import extract_path, texts


def model(folder: Path, **files: object) -> FileResult:
    """Write files into a directory and extract it. Names: `__` is `/`, `_json` and `_jinja` at the end are suffixes."""
    for key, content in files.items():
        stem, _, suffix = key.replace("__", "/").rpartition("_")
        path = folder / f"{stem}.{suffix}"
        path.parent.mkdir(exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) and suffix == "jinja" else json.dumps(content))
    return extract_path(folder)


def test_every_place_gives_its_variants(tmp_path: Path) -> None:
    result = model(
        tmp_path,
        chat_template_jinja="d",
        additional_chat_templates__rag_jinja="r",
        additional_chat_templates__tool_use_jinja="t",
        tokenizer_config_json={"bos_token": "<s>", "eos_token": {"content": "</s>"}, "add_bos_token": True},
        config_json={"architectures": ["LlamaForCausalLM"], "model_type": "llama"},
    )
    assert result.outcome is Outcome.ANALYSED
    assert list(texts(result).items()) == [("default", b"d"), ("rag", b"r"), ("tool_use", b"t")]
    assert [template.origin for template in result.templates] == [
        "chat_template.jinja",
        "additional_chat_templates/rag.jinja",
        "additional_chat_templates/tool_use.jinja",
    ]
    assert result.metadata.architecture == "LlamaForCausalLM"
    assert result.metadata.bos == SpecialToken(None, "<s>", True)
    assert result.metadata.eos == SpecialToken(None, "</s>", None)
    assert result.notes == ()


@pytest.mark.parametrize(
    "value",
    [
        [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}],
        {"tool_use": "t", "default": "d"},
        [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d", "more": 1}],
    ],
)
def test_a_list_of_named_templates(tmp_path: Path, value: object) -> None:
    result = model(tmp_path, tokenizer_config_json={"chat_template": value})
    assert list(texts(result).items()) == [("default", b"d"), ("tool_use", b"t")]


def test_of_two_entries_with_one_name_the_later_counts(tmp_path: Path) -> None:
    entries = [{"name": "default", "template": text} for text in ("first", "second", "third")]
    result = model(tmp_path, tokenizer_config_json={"chat_template": entries})
    assert texts(result) == {
        "default": b"third",
        "default (tokenizer_config.json)": b"second",
        "default (tokenizer_config.json) #2": b"first",
    }


def test_places_that_differ_are_both_kept_and_noted(tmp_path: Path) -> None:
    result = model(
        tmp_path,
        chat_template_jinja="one",
        chat_template_json={"chat_template": "two"},
        tokenizer_config_json={"chat_template": "three"},
    )
    assert texts(result) == {
        "default": b"one",
        "default (chat_template.json)": b"two",
        "default (tokenizer_config.json)": b"three",
    }
    assert len(result.notes) == 2
    assert "chat_template.jinja" in result.notes[0] and "chat_template.json" in result.notes[0]


def test_places_that_agree_are_one(tmp_path: Path) -> None:
    same = {"chat_template": "é\n"}
    result = model(tmp_path, chat_template_jinja="é\n".encode(), chat_template_json=same, tokenizer_config_json=same)
    assert texts(result) == {"default": "é\n".encode()}
    assert result.notes == ()


def test_legacy_json_wins_over_the_configuration(tmp_path: Path) -> None:
    result = model(
        tmp_path, chat_template_json={"chat_template": "two"}, tokenizer_config_json={"chat_template": "three"}
    )
    assert texts(result)["default"] == b"two"


def test_what_transformers_ignores_beside_files_is_noted(tmp_path: Path) -> None:
    entries = [{"name": "tool_use", "template": "t"}]
    result = model(tmp_path, chat_template_jinja="d", tokenizer_config_json={"chat_template": entries})
    assert list(texts(result)) == ["default", "tool_use"]
    assert len(result.notes) == 1 and "transformers ignores it" in result.notes[0]


def test_no_template(tmp_path: Path) -> None:
    result = model(tmp_path, tokenizer_config_json={"bos_token": None}, config_json={"model_type": "llama"})
    assert result.outcome is Outcome.NO_TEMPLATE
    assert result.reason
    assert result.metadata.architecture == "llama"


def test_an_adapter_is_skipped_unless_it_has_a_template(tmp_path: Path) -> None:
    result = model(tmp_path, tokenizer_config_json={}, adapter_config_json={})
    assert result.outcome is Outcome.SKIPPED
    assert result.reason is not None and "adapter" in result.reason
    assert model(tmp_path, tokenizer_config_json={"chat_template": "x"}).outcome is Outcome.ANALYSED


@pytest.mark.parametrize(
    ("content", "offset"),
    [
        (b"", 0),
        (b'{"a": "\xc3\xa9", x}', 12),
        (b'{"a": "\xff"}', 7),
        (b"\xef\xbb\xbf{}", 0),
        (b"[" * 200_000, None),
        (b'{"a": ' + b"9" * 5000 + b"}", None),
        (b"[]", None),
        (b'{"chat_template": 7}', None),
        (b'{"chat_template": [7]}', None),
        (b'{"chat_template": [{"template": "x"}]}', None),
        (b'{"chat_template": [{"name": "x"}]}', None),
        (b'{"chat_template": {"x": null}}', None),
        (b'{"bos_token": 7}', None),
        (b'{"eos_token": {"content": []}}', None),
        (b'{"add_bos_token": "yes"}', None),
    ],
)
def test_json_that_is_broken_or_of_wrong_types_is_unreadable(
    tmp_path: Path, content: bytes, offset: int | None
) -> None:
    result = model(tmp_path, tokenizer_config_json=content)
    assert result.outcome is Outcome.UNREADABLE
    assert result.offset == offset
    assert result.expected
    assert result.reason is not None and result.reason.startswith("tokenizer_config.json: ")


def test_legacy_json_without_a_template_is_unreadable(tmp_path: Path) -> None:
    assert model(tmp_path, chat_template_json={}).outcome is Outcome.UNREADABLE


def test_a_broken_model_configuration_costs_the_architecture_only(tmp_path: Path) -> None:
    result = model(tmp_path, chat_template_jinja="x", config_json=b"{")
    assert result.outcome is Outcome.ANALYSED
    assert result.metadata.architecture is None
    assert len(result.notes) == 1 and "config.json" in result.notes[0]


def test_a_broken_link_among_the_additional_templates_is_named(tmp_path: Path) -> None:
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates/rag.jinja").symlink_to("nowhere")
    result = extract_path(tmp_path)
    assert result.outcome is Outcome.UNREADABLE
    assert result.reason == "rag.jinja: cannot be read: No such file or directory"


def test_half_a_surrogate_pair_in_json(tmp_path: Path) -> None:
    result = model(tmp_path, tokenizer_config_json=b'{"chat_template": "\\ud800x", "bos_token": "\\ud800"}')
    assert texts(result) == {"default": b"\xed\xa0\x80x"}
    assert result.metadata.bos.text == "?"


def test_files_beyond_the_limits_are_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model(tmp_path, additional_chat_templates__a_jinja="x" * 10, additional_chat_templates__b_jinja="x" * 10)
    monkeypatch.setattr(huggingface, "MAX_ADDITIONAL_BYTES", 19)
    assert extract_path(tmp_path).outcome is Outcome.UNREADABLE
    monkeypatch.setattr(huggingface, "MAX_ADDITIONAL_BYTES", 20)
    assert extract_path(tmp_path).outcome is Outcome.ANALYSED
    monkeypatch.setattr(huggingface, "MAX_JSON_BYTES", 5)
    result = model(tmp_path, tokenizer_config_json={"abc": 1})
    assert result.reason is not None and "limit" in result.reason


@settings(max_examples=80, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters()),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["name", "template", "content", "x"]), inner),
        max_leaves=6,
    ),
    st.sampled_from(["chat_template", "bos_token", "add_eos_token"]),
)
def test_any_json_is_a_result(tmp_path_factory: pytest.TempPathFactory, value: object, key: str) -> None:
    path = tmp_path_factory.getbasetemp() / "tokenizer_config.json"
    path.write_text(json.dumps({key: value}))
    folder = str(path.parent)
    result = extract(ModelFile(folder, folder, SourceKind.HUGGINGFACE, 0, 0, ""))
    assert result.outcome in (Outcome.ANALYSED, Outcome.NO_TEMPLATE, Outcome.UNREADABLE)
    str(result).encode()


def test_discovery_and_extraction_name_the_same_files() -> None:
    assert discover.TEMPLATE_FILE == huggingface.TEMPLATE_FILE
    assert discover.TEMPLATE_FOLDER == huggingface.TEMPLATE_FOLDER
    assert set(discover.DIRECTORY_FILES) == {
        huggingface.TEMPLATE_FILE,
        huggingface.TEMPLATE_JSON,
        huggingface.TOKENIZER_CONFIG,
        huggingface.MODEL_CONFIG,
        huggingface.ADAPTER_CONFIG,
    }
