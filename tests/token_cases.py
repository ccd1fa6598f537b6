"""The tokens that llama.cpp uses of a GGUF file, for many files: `python -m tests.token_cases [--check]`.

Builds every case's model, asks real llama-server about it and writes its answers to `tests/cases/gguf_tokens.json`.
With `--check` nothing is written; the exit code is 1 when any answer differs. Needs the extra `oracle`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy
from gguf import GGUFValueType, GGUFWriter

from scanner import oracle
from scanner.extract import gguf, gguf_tokens

CASES = Path(__file__).parent / "cases" / "gguf_tokens.json"

TEMPLATE = (
    "{% if messages[0].content == 'tokens' %}[{{ bos_token }}|{{ eos_token }}]"
    "{% else %}{{ bos_token }}x{{ eos_token }}{% endif %}"
)
"""Answers `tokens` with the two texts, anything else with a prompt from which added tokens are cut."""
TOKENS = {"messages": [{"role": "user", "content": "tokens"}]}
PROMPT = {"messages": [{"role": "user", "content": "prompt"}]}

_WIDTH, _INNER = 32, 64
_SCALARS = {bool: GGUFValueType.BOOL, int: GGUFValueType.UINT32, str: GGUFValueType.STRING}


@dataclass(frozen=True, slots=True)
class Model:
    """A tokenizer: `keys` of the header (`INT32:KEY` for another type than that of the value), so many tokens, texts
    and types of some of them by id. `typed`: whether the file has types at all."""

    name: str
    keys: Mapping[str, str | int | bool]
    count: int = 300
    texts: Mapping[int, str] | None = None
    types: Mapping[int, int] | None = None
    typed: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server made of the template: both texts, and the prompt; or why it did not start."""

    tokens: str = ""
    prompt: str = ""
    refused: str | None = None


def models() -> Iterator[Model]:
    """Every case."""
    yield from _by_name()
    yield from _by_keys()
    yield from _by_size()
    yield from _by_text()


def _tokenizer(model: str, pre: str | None = None) -> dict[str, str | int | bool]:
    return {gguf.MODEL: model, **({} if pre is None else {gguf.PRE: pre})}


def _by_name() -> Iterator[Model]:
    for model in (*sorted(gguf_tokens.TOKENIZERS), *sorted(gguf_tokens.WITHOUT_VOCABULARY), "unheard-of", ""):
        yield Model(f"model {model}", _tokenizer(model))
    for pre in (*sorted(gguf_tokens.PRES), "unheard-of"):
        yield Model(f"gpt2, pre {pre}", _tokenizer("gpt2", pre))
    for model in sorted(gguf_tokens.TOKENIZERS.keys() - {"gpt2"}):
        for pre in ("llama-bpe", "glm4", "gemma4", "unheard-of"):
            yield Model(f"{model}, pre {pre}", _tokenizer(model, pre))


def _by_keys() -> Iterator[Model]:
    bos, eos = gguf.BOS_ID, gguf.EOS_ID
    variations: Mapping[str, dict[str, str | int | bool]] = {
        "ids": {bos: 5, eos: 6},
        "one id": {bos: 5},
        "ids out of range": {bos: 300, eos: 0xFFFFFFFF},
        "first and last id": {bos: 299, eos: 0},
        "nothing added": {gguf.ADD_BOS: False, gguf.ADD_EOS: False, bos: 5, eos: 6},
        "both added": {gguf.ADD_BOS: True, gguf.ADD_EOS: True, bos: 5, eos: 6},
        "both added, no ids": {gguf.ADD_BOS: True, gguf.ADD_EOS: True},
    }
    names: tuple[tuple[str, str | None], ...] = (
        *((model, None) for model in sorted(gguf_tokens.TOKENIZERS)),
        *(("gpt2", pre) for pre in ("llama-bpe", "glm4", *sorted(gguf_tokens.PRE_WITH_SPACES))),
    )
    for (model, pre), (what, keys) in ((name, item) for name in names for item in variations.items()):
        yield Model(f"{model}, pre {pre}, {what}", _tokenizer(model, pre) | keys)
    for pre in sorted(gguf_tokens.PRE_ADDING_BOS):
        yield Model(f"gpt2, pre {pre}, no BOS", _tokenizer("gpt2", pre) | {gguf.ADD_BOS: False, bos: 5})
    for kind in ("UINT8", "INT8", "UINT16", "INT16", "INT32", "UINT64", "INT64"):
        yield Model(f"BOS as {kind}", _tokenizer("llama") | {f"{kind}:{bos}": 5})
        yield Model(f"EOS as {kind}", _tokenizer("llama") | {f"{kind}:{eos}": 5})
    for model in sorted(gguf_tokens.WITHOUT_VOCABULARY):
        yield Model(f"{model}, with a size", _tokenizer(model) | {"llama.vocab_size": 300})
    yield Model("no model at all", {bos: 5, eos: 6})


def _by_size() -> Iterator[Model]:
    for model, counts in {"llama": (1, 2, 3), "gpt2": (3, 11, 12), "bert": (101, 102), "rwkv": (3,)}.items():
        for count in counts:
            yield Model(f"{model}, {count} token(s)", _tokenizer(model), count)
    yield Model("an id and a default out of range", _tokenizer("gpt2") | {gguf.BOS_ID: 7}, 5)


def _by_text() -> Iterator[Model]:
    texts = {5: "Ġa<0x41>", 6: "▁b▁"}
    for model in sorted(gguf_tokens.TOKENIZERS.keys() - {"rwkv"}):
        keys = _tokenizer(model) | {gguf.BOS_ID: 5, gguf.EOS_ID: 6}
        for kind in (1, 2, 3, 4, 5):
            # A byte-level text of type normal that is none is not ours to spell.
            spelt = texts | {6: "ĊĊ"} if model in ("gpt2", "hybriddna", "whitespace") and kind == 1 else texts
            yield Model(f"{model}, texts of type {kind}", keys, texts=spelt, types={5: kind, 6: kind})
    keys = {gguf.BOS_ID: 5, gguf.EOS_ID: 6}
    yield Model("llama, no types", _tokenizer("llama") | keys, texts=texts, typed=False)
    yield Model("gpt2, no types", _tokenizer("gpt2") | keys, texts=texts | {6: "ĠĊé"}, typed=False)
    yield Model("an empty text", _tokenizer("llama") | keys, texts={5: ""})
    for pre in ("gemma4", "llama-bpe"):
        yield Model(f"gpt2, pre {pre}, texts", _tokenizer("gpt2", pre) | keys, texts={5: "Ġa", 6: "▁b"}, types={6: 3})
    yield Model("gpt2, pre gemma4, spaces", _tokenizer("gpt2", "gemma4") | keys, texts={5: "▁a", 6: "▁b"})
    yield Model("llama, a byte", _tokenizer("llama") | {gguf.BOS_ID: 3 + 0x41, gguf.EOS_ID: 3 + 0xE9})
    for model in ("gemma4", "gpt2", "rwkv", "t5"):
        yield Model(f"{model}, a byte", _tokenizer(model) | keys, texts={5: "<0x41>"}, types={5: 6})
    yield Model("gpt2, pre mmbert, a byte", _tokenizer("gpt2", "mmbert") | keys, texts={5: "<0x41>"}, types={5: 6})
    yield Model("gpt2, a character", _tokenizer("gpt2") | keys, texts={5: "ÃŁ", 6: "éé"})
    yield Model("rwkv, escapes", _tokenizer("rwkv") | keys, texts={5: "\\t\\x41\\q", 6: "\\xe3\\x81\\x82\\r"})


def write_model(path: Path, model: Model) -> None:
    """Write a model that llama.cpp loads if it takes the tokenizer."""
    writer = GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_context_length(256)
    writer.add_embedding_length(_WIDTH)
    writer.add_feed_forward_length(_INNER)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDTH // 2)
    _add_vocabulary(writer, model)
    for key, value in model.keys.items():
        *kind, name = key.split(":")
        writer.add_key_value(name, value, GGUFValueType[kind[0]] if kind else _SCALARS[type(value)])
    writer.add_chat_template(TEMPLATE)
    for tensor, shape in _shapes(model.count).items():
        writer.add_tensor(tensor, numpy.zeros(shape, dtype=numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_vocabulary(writer: GGUFWriter, model: Model) -> None:
    by_bytes = model.keys.get(gguf.MODEL) in ("llama", "plamo2")
    texts = ["<unk>", "<s>", "</s>", *_bytes(by_bytes)]
    texts = [*texts, *(f"filler{number}" for number in range(len(texts), model.count))][: model.count]
    kinds = [2, 3, 3, *[6 if by_bytes else 1] * 256, *[1] * model.count][: model.count]
    for number, text in (model.texts or {}).items():
        # What stood there moves to the end: a vocabulary in which a byte is missing does not load.
        texts[number], texts[number + 285], kinds[number + 285] = text, texts[number], kinds[number]
        kinds[number] = 1
    for number, kind in (model.types or {}).items():
        kinds[number] = kind
    writer.add_token_list(texts)
    writer.add_token_scores([0.0] * len(texts))
    if model.typed:
        writer.add_token_types(kinds)
    writer.add_token_merges(["f i"])


def _bytes(spelt_out: bool) -> list[str]:
    """A token for each byte."""
    if spelt_out:
        return [f"<0x{byte:02X}>" for byte in range(256)]
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) if byte in printable else chr(256 + others.index(byte)) for byte in range(256)]


def _shapes(count: int) -> Mapping[str, tuple[int, ...]]:
    layer = {f"attn_{name}": (_WIDTH, _WIDTH) for name in ("q", "k", "v", "output")}
    feed = {"ffn_gate": (_INNER, _WIDTH), "ffn_up": (_INNER, _WIDTH), "ffn_down": (_WIDTH, _INNER)}
    norms = {"attn_norm": (_WIDTH,), "ffn_norm": (_WIDTH,)}
    ends = {"token_embd.weight": (count, _WIDTH), "output.weight": (count, _WIDTH), "output_norm.weight": (_WIDTH,)}
    return ends | {f"blk.0.{name}.weight": shape for name, shape in (layer | feed | norms).items()}


def ask(model: Model) -> Answer:
    """What a server of its own says of a model."""
    with tempfile.TemporaryDirectory(prefix="capscan-tokens-") as folder:
        path = Path(folder, "model.gguf")
        write_model(path, model)
        answer = _ask_child(path)
    if len(answer.replies) < 2:
        return Answer(refused=_short(answer.reason or ""))
    tokens, prompt = (reply.prompt or "" for reply in answer.replies)
    return Answer(tokens, prompt)


def _ask_child(model: Path) -> oracle.Answer:
    requests = json.dumps([TOKENS, PROMPT]).encode()
    with subprocess.Popen(
        [sys.executable, "-m", "scanner.oracle", str(model)],
        cwd=Path(__file__).resolve().parent.parent,
        # An engine that aborts would start a debugger on itself.
        env=os.environ | {"GGML_NO_BACKTRACE": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        try:
            out, log = child.communicate(requests, 60)
        except subprocess.TimeoutExpired:
            # All may have been said before it hung.
            child.kill()
            out, log = child.communicate()
            return oracle.read_answer(out, log, "timed out")
    return oracle.read_answer(out, log, oracle.why_it_died(child.returncode))


def _short(reason: str) -> str:
    """The innermost reason of a refusal, without what changes from run to run."""
    return reason.splitlines()[0].removeprefix("error loading model: ").removeprefix("error loading model vocabulary: ")


def stored() -> Mapping[str, Answer]:
    """The engine's answers as they are kept, by the names of the cases."""
    return {name: Answer(**answer) for name, answer in json.loads(CASES.read_text(encoding="utf-8")).items()}


def answers_text() -> str:
    """The engine's answers as they are to be kept: a line for each case."""
    asked = list(models())
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(ask, asked))
    lines = [
        f"{json.dumps(model.name)}: {json.dumps(_document(answer), ensure_ascii=False)}"
        for model, answer in zip(asked, answers, strict=True)
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _document(answer: Answer) -> dict[str, str]:
    if answer.refused is not None:
        return {"refused": answer.refused}
    return {"tokens": answer.tokens, "prompt": answer.prompt}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if anything differs")
    options = parser.parse_args(arguments)
    if reason := oracle.available():
        print(reason, file=sys.stderr)  # noqa: T201 - a command-line program
        return 2
    text = answers_text()
    if CASES.exists() and CASES.read_text(encoding="utf-8") == text:
        return 0
    print(f"{CASES.name}: {'differs' if options.check else 'written'}")  # noqa: T201 - a command-line program
    if not options.check:
        CASES.write_text(text, encoding="utf-8")
    return 1 if options.check else 0


if __name__ == "__main__":
    raise SystemExit(main())
