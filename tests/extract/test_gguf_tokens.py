"""The tokens that llama.cpp uses of a GGUF file: ours against those of real llama-server, kept in a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scanner.extract import gguf
from scanner.extract.gguf_tokens import GgufMetadata, UsedTokens
from scanner.probe.profiles import CURRENT
from scanner.results import FileResult, SpecialToken
from scanner.serving import vocabulary_of
from tests import gguf_builder as build
from tests import token_cases
from tests.extract.helpers import extract_path
from tests.gguf_builder import RawGguf, write_gguf
from tests.shared_data import shared_path
from tests.test_cli import capscan
from tests.token_cases import Answer, Model

MODELS = {model.name: model for model in token_cases.models()}
ANSWERS = token_cases.stored()
RENDERED = ("model llama", "gpt2, pre llama-bpe", "gpt2, pre qwen2", "t5, pre None, one id", "gpt2, pre gemma4, spaces")


def extracted(folder: Path, model: Model) -> FileResult:
    path = folder / "m.gguf"
    token_cases.write_model(path, model)
    return extract_path(path)


def used(result: FileResult) -> UsedTokens | None:
    assert isinstance(result.metadata, GgufMetadata)
    return result.metadata.used


def ours(result: FileResult) -> Answer:
    vocabulary = vocabulary_of(result.metadata)
    prompt = f"{'' if vocabulary.add_bos else vocabulary.bos}x{'' if vocabulary.add_eos else vocabulary.eos}"
    return Answer(f"[{vocabulary.bos}|{vocabulary.eos}]", prompt)


def test_every_case_has_an_answer() -> None:
    assert list(MODELS) == list(ANSWERS)


@pytest.mark.parametrize("name", [name for name, answer in ANSWERS.items() if answer.refused is None])
def test_the_tokens_are_those_of_llama_cpp(tmp_path: Path, name: str) -> None:
    result = extracted(tmp_path, MODELS[name])
    assert ours(result) == ANSWERS[name]
    assert used(result) is not None
    assert not any("does not run" in note for note in result.notes)


@pytest.mark.parametrize("name", [name for name, answer in ANSWERS.items() if answer.refused is not None])
def test_what_llama_cpp_does_not_run_is_noted_and_nothing_is_made_up(tmp_path: Path, name: str) -> None:
    result = extracted(tmp_path, MODELS[name])
    assert used(result) is None
    # A file without `tokenizer.ggml.model` may be no more than a fragment: that goes without saying.
    silent = gguf.MODEL not in MODELS[name].keys
    assert any(f"llama.cpp {CURRENT.name} does not run this model: " in note for note in result.notes) is not silent


@pytest.mark.parametrize("name", RENDERED)
def test_render_makes_the_prompt_that_llama_server_makes(tmp_path: Path, name: str) -> None:
    path = tmp_path / "m.gguf"
    token_cases.write_model(path, MODELS[name])
    prompt = capscan("render", str(path), "--request", json.dumps(token_cases.PROMPT))
    assert (prompt.returncode, prompt.stdout.decode()) == (0, ANSWERS[name].prompt)
    tokens = capscan("render", str(path), "--request", json.dumps(token_cases.TOKENS))
    assert (tokens.returncode, tokens.stdout.decode()) == (0, ANSWERS[name].tokens)


def test_what_the_file_says_stays_what_it_says(tmp_path: Path) -> None:
    silent = extracted(tmp_path, MODELS["model llama"])
    assert (silent.metadata.bos, silent.metadata.eos) == (SpecialToken(), SpecialToken())
    assert used(silent) == UsedTokens(SpecialToken(1, "<s>", True), SpecialToken(2, "</s>", False))
    outside = extracted(tmp_path, MODELS["llama, pre None, ids out of range"])
    assert outside.metadata.bos == SpecialToken(300)
    assert used(outside) == used(silent)
    spelt = extracted(tmp_path, MODELS["gpt2, pre llama-bpe, texts"])
    assert spelt.metadata.bos == SpecialToken(5, "Ġa")
    assert used(spelt) == UsedTokens(SpecialToken(5, " a", True), SpecialToken(6, "▁b", False))


def test_without_a_tokenizer_or_its_tokens_nothing_is_known(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", "x", strings={gguf.MODEL: "llama"}, tokens=())
    assert used(extract_path(path)) is None
    assert used(extract_path(write_gguf(tmp_path / "m.gguf", "x"))) is None


@pytest.mark.parametrize("order", "<>")
def test_types_are_read_in_either_byte_order(tmp_path: Path, order: str) -> None:
    raw = RawGguf(order=order).add_array(gguf.KINDS, build.INT32, [1, 3])
    raw.add(gguf.MODEL, build.STRING, "llama").add_array(gguf.TOKENS, build.STRING, ["▁a", "▁b"])
    raw.add(gguf.BOS_ID, build.UINT32, 0).add(gguf.EOS_ID, build.UINT32, 1)
    tokens = used(extract_path(raw.write(tmp_path / "m.gguf")))
    assert tokens is not None
    assert (tokens.bos.text, tokens.eos.text) == (" a", "▁b")


@pytest.mark.parametrize(
    "raw",
    [
        RawGguf().add(gguf.KINDS, build.INT32, 3),
        RawGguf().add_array(gguf.KINDS, build.INT32, []),
        RawGguf().add_array(gguf.KINDS, build.UINT8, [3]),
    ],
)
def test_types_that_are_none_are_passed_over(tmp_path: Path, raw: RawGguf) -> None:
    raw.add(gguf.MODEL, build.STRING, "llama").add_array(gguf.TOKENS, build.STRING, ["▁a"])
    tokens = used(extract_path(raw.add(gguf.BOS_ID, build.UINT32, 0).write(tmp_path / "m.gguf")))
    assert tokens is not None and tokens.bos.text == " a"


def test_real_vocabularies() -> None:
    gemma = used(extract_path(shared_path("corpus", "gguf", "ggml-vocab-gemma-4.gguf")))
    assert gemma == UsedTokens(SpecialToken(2, "<bos>", True), SpecialToken(1, "<eos>", False))
    spm = used(extract_path(shared_path("corpus", "gguf", "ggml-vocab-llama-spm.gguf")))
    assert spm == UsedTokens(SpecialToken(1, "<s>", True), SpecialToken(2, "</s>", False))
    qwen = used(extract_path(shared_path("corpus", "gguf", "ggml-vocab-qwen2.gguf")))
    assert qwen is not None and (qwen.bos.text, qwen.bos.added) == ("<|endoftext|>", False)
