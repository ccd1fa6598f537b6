"""What llama.cpp makes of a GGUF file's tokens where the file does not say, or says it otherwise.

Everything here was got by asking llama.cpp b11549 about small files (`python -m tests.token_cases` asks again): the
defaults hang on `tokenizer.ggml.model` and, for byte-level tokenizers, on `tokenizer.ggml.pre`; the architecture has no
part in it. An id that the vocabulary does not have is as good as none, and so is a default that it does not have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from scanner.results import ModelMetadata, SpecialToken

BUILD: Final = "b11549"
"""The build of llama.cpp that was asked."""


@dataclass(frozen=True, slots=True)
class GgufMetadata(ModelMetadata):
    """Metadata, and the tokens as llama.cpp uses them: none of it is unsaid, but a token that it does without has
    neither id nor text. None: not known (no tokenizer, or one that llama.cpp does not load). Never stored."""

    used: UsedTokens | None = None


@dataclass(frozen=True, slots=True)
class UsedTokens:
    """The two tokens of a vocabulary, as templates see them, and whether the tokenizer adds them."""

    bos: SpecialToken
    eos: SpecialToken


@dataclass(frozen=True, slots=True)
class RawToken:
    """An entry of the vocabulary as it stands in the file; `kind` is its `tokenizer.ggml.token_type`, None without."""

    text: bytes
    kind: int | None


class Spelling(Enum):
    """How the texts of ordinary tokens are written."""

    BYTE_LEVEL = "a printable character for each byte"
    SPACES = "U+2581 for a space"
    ESCAPED = "escapes of a Python literal"
    PLAIN = "as they are"


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """One `tokenizer.ggml.model`: ids and flags in the absence of keys. `always_bos`: whatever the file says."""

    spelling: Spelling
    bos: int | None = None
    eos: int | None = None
    add_bos: bool = False
    add_eos: bool = False
    always_bos: bool = False


_BYTE_LEVEL: Final = Tokenizer(Spelling.BYTE_LEVEL, 11, 11)
TOKENIZERS: Final[Mapping[str, Tokenizer]] = {
    "llama": Tokenizer(Spelling.SPACES, 1, 2, add_bos=True),
    "bert": Tokenizer(Spelling.SPACES, 101, None, add_bos=True),
    "t5": Tokenizer(Spelling.SPACES, None, 1, add_eos=True),
    "gemma4": Tokenizer(Spelling.SPACES, add_bos=True, always_bos=True),
    "rwkv": Tokenizer(Spelling.ESCAPED),
    "plamo2": Tokenizer(Spelling.PLAIN, 1, 2),
    "gpt2": _BYTE_LEVEL,
    "hybriddna": _BYTE_LEVEL,
    "whitespace": _BYTE_LEVEL,
}
"""By `tokenizer.ggml.model`."""

WITHOUT_VOCABULARY: Final = frozenset({"none", "no_vocab"})
"""Values of `tokenizer.ggml.model` for no tokens at all: llama-server dies of it."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PRE_ADDING_BOS: Final = _words(
    "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano tekken chameleon"
)
"""Byte-level: BOS is added unless the file says no."""
PRE_ALWAYS_ADDING_BOS: Final = frozenset({"gemma4", "granite-embed-multi-311m"})
"""Byte-level: BOS is added even if the file says no."""
PRE_WITHOUT_BOS: Final = frozenset({"chatglm-bpe", "glm4", "glm5"})
"""Byte-level: no BOS unless the file names one."""
PRE_USUAL: Final = _words(
    "default jina-v2-de jina-v2-es jina-v2-code mmbert modern-bert kimi-k2 minicpm5 whitespace deepseek-llm"
    " deepseek-coder deepseek-v3 spark2_5 youtu falcon mpt starcoder gpt-2 phi-2 jina-es jina-de gigachat a.x-4.0"
    " mellum jais-2 sarvam-moe jina-v1-en roberta-bpe refact command-r qwen2 deepseek-r1-qwen kormo f2llmv2 qwen35"
    " stablelm2 olmo dbrx smaug-bpe poro-chat viking jais smollm codeshell bloom gpt3-finnish exaone exaone4 exaone-moe"
    " minerva-7b megrez gpt-4o llama4 kanana2 talkie granite-embed-multi-97m tiny_aya cohere2moe superbpe trillion"
    " granite-docling bailingmoe bailingmoe2 llada-moe seed-coder hunyuan hunyuan-dense hy_v4 joyai-llm ufakzeka grok-2"
    " afmoe laguna minimax-m2 solar-open mellum2 k2-horizon"
)
"""Byte-level: nothing is added."""
PRE_WITH_SPACES: Final = frozenset({"gemma4", "granite-embed-multi-311m", "mmbert", "sarvam-moe"})
"""Byte-level by name only: ordinary texts are written with U+2581 for a space."""
PRES: Final = PRE_ADDING_BOS | PRE_ALWAYS_ADDING_BOS | PRE_WITHOUT_BOS | PRE_USUAL | {""}

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE = 1, 2, 3, 4, 6
_VERBATIM: Final = frozenset({_UNKNOWN, _CONTROL, _USER_DEFINED})
_BYTE_TOKEN: Final = re.compile(rb"<0x([0-9A-Fa-f]{2})>")
_ESCAPE: Final = re.compile(rb"\\(?:x([0-9a-f]{2})|(.))", re.DOTALL)
_ESCAPED: Final[Mapping[bytes, bytes]] = {b"t": b"\t", b"n": b"\n", b"r": b"\r"}


def why_not_loaded(model: str | None, pre: str | None) -> str | None:
    """Why llama-server does not start with a tokenizer of these names; None where it does, or where the file has no
    such names."""
    if model is None:
        return None
    refusal = f"llama.cpp {BUILD} does not run this model"
    if model in WITHOUT_VOCABULARY:
        return f"{refusal}: tokenizer.ggml.model is {model!r}, so it has no vocabulary"
    if model not in TOKENIZERS:
        return f"{refusal}: tokenizer.ggml.model is {model!r}, which it does not know"
    if TOKENIZERS[model] is _BYTE_LEVEL and pre is not None and pre not in PRES:
        return f"{refusal}: tokenizer.ggml.pre is {pre!r}, which it does not know"
    return None


def tokenizer_of(model: str, pre: str | None) -> Tokenizer | None:
    """The defaults of a tokenizer by its two names; None where llama.cpp has none that would run."""
    tokenizer = TOKENIZERS.get(model)
    if tokenizer is not _BYTE_LEVEL or pre is None:
        return tokenizer
    if pre not in PRES:
        return None
    always = pre in PRE_ALWAYS_ADDING_BOS
    bos = None if pre in PRE_WITHOUT_BOS else tokenizer.bos
    spelling = Spelling.SPACES if pre in PRE_WITH_SPACES else tokenizer.spelling
    return replace(tokenizer, spelling=spelling, bos=bos, add_bos=always or pre in PRE_ADDING_BOS, always_bos=always)


def used_tokens(
    tokenizer: Tokenizer, bos: SpecialToken, eos: SpecialToken, token_at: Callable[[int], RawToken | None]
) -> UsedTokens:
    """What llama.cpp uses, from what a file says (ids and flags of `bos` and `eos`). `token_at` gives the entry of the
    vocabulary with an id, None outside of it."""

    def used(said: SpecialToken, default: int | None, added: bool) -> SpecialToken:
        for number in (said.id, default):
            raw = None if number is None else token_at(number)
            if number is not None and raw is not None:
                return SpecialToken(number, piece(tokenizer.spelling, number, raw), added)
        return SpecialToken(added=added)

    add_bos = tokenizer.add_bos if bos.added is None or tokenizer.always_bos else bos.added
    add_eos = tokenizer.add_eos if eos.added is None else eos.added
    return UsedTokens(used(bos, tokenizer.bos, add_bos), used(eos, tokenizer.eos, add_eos))


def piece(spelling: Spelling, number: int, raw: RawToken) -> str:
    """The text of a token in a prompt; what is not UTF-8 is replaced. Tokens of the type unused have none (llama.cpp
    spares a few by their text: those that end an answer)."""
    text = raw.text or f"[EMPTY_{number}]".encode()
    return _piece(spelling, text, _NORMAL if raw.kind is None else raw.kind).decode("utf-8", errors="replace")


def _piece(spelling: Spelling, text: bytes, kind: int) -> bytes:
    byte = _BYTE_TOKEN.fullmatch(text) if kind == _BYTE else None
    if byte is not None and spelling is not Spelling.ESCAPED:
        return bytes([int(byte[1], 16)])
    if spelling is Spelling.PLAIN:
        return text
    if spelling is Spelling.ESCAPED:
        return _ESCAPE.sub(_unescaped, text)
    if kind in _VERBATIM:
        return text
    if kind == _NORMAL:
        return _from_byte_level(text) if spelling is Spelling.BYTE_LEVEL else text.replace("▁".encode(), b" ")
    return b""


def _unescaped(escape: re.Match[bytes]) -> bytes:
    digits, character = escape.groups()
    return bytes([int(digits, 16)]) if digits else _ESCAPED.get(character, character)


def _byte_level_alphabet() -> Mapping[str, int]:
    """The bytes by the characters that stand for them (as GPT-2 has it): printable ones for themselves, the others
    from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + place): byte for place, byte in enumerate(others)}


_ALPHABET: Final = _byte_level_alphabet()


def _from_byte_level(text: bytes) -> bytes:
    """The bytes that a byte-level text stands for. One with other characters is no such text, and stays as it is."""
    characters = text.decode("utf-8", errors="replace")
    if not set(characters) <= _ALPHABET.keys():
        return text
    return bytes(_ALPHABET[character] for character in characters)
