"""GGUF files: the templates and the metadata among their key-values.

Key names are those of `gguf.constants.Keys` (a test holds them equal; importing the package would load numpy). Which
keys are templates: `tokenizer.chat_template` is the variant `default`, `tokenizer.chat_template.NAME` is `NAME`, and
`tokenizer.chat_templates` lists the names. Template bytes are kept as they stand, as llama.cpp uses them; other text
that is not UTF-8 is decoded with replacement characters. BOS and EOS are what the file says; what llama.cpp uses where
it says nothing stands beside them (`gguf_tokens`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from scanner.extract.gguf_header import MAGIC, ArrayValue, Header, HeaderReader, ValueType, describe_type
from scanner.extract.gguf_tokens import (
    BUILD,
    GgufMetadata,
    RawToken,
    UsedTokens,
    tokenizer_of,
    used_tokens,
    why_not_loaded,
)
from scanner.extract.roles import WHY_NO_TEMPLATE, WITHOUT_TEMPLATE, role_of
from scanner.extract.source import LocalFile, RangeReader
from scanner.extract.split import SPLIT_COUNT, SPLIT_KEYS, SPLIT_NO, is_first, split_notes
from scanner.extract.variants import DEFAULT, settle
from scanner.results import ChatTemplate, FileResult, ModelFile, ModelMetadata, Outcome, Role, SpecialToken
from scanner.shards import shard_of

TYPE: Final = "general.type"
ARCHITECTURE: Final = "general.architecture"
NAME: Final = "general.name"
BASENAME: Final = "general.basename"
SIZE_LABEL: Final = "general.size_label"
FILE_TYPE: Final = "general.file_type"
QUANTIZED_BY: Final = "general.quantized_by"
LICENSE: Final = "general.license"
REPO_URL: Final = "general.repo_url"
SOURCE_REPO_URL: Final = "general.source.repo_url"
BLOCK_COUNT: Final = "{arch}.block_count"
MODEL: Final = "tokenizer.ggml.model"
PRE: Final = "tokenizer.ggml.pre"
TOKENS: Final = "tokenizer.ggml.tokens"
KINDS: Final = "tokenizer.ggml.token_type"
BOS_ID: Final = "tokenizer.ggml.bos_token_id"
EOS_ID: Final = "tokenizer.ggml.eos_token_id"
ADD_BOS: Final = "tokenizer.ggml.add_bos_token"
ADD_EOS: Final = "tokenizer.ggml.add_eos_token"
CHAT_TEMPLATE: Final = "tokenizer.chat_template"
CHAT_TEMPLATES: Final = "tokenizer.chat_templates"

FILE_TYPES: Final[Mapping[int, str]] = {
    0: "ALL_F32",
    1: "MOSTLY_F16",
    2: "MOSTLY_Q4_0",
    3: "MOSTLY_Q4_1",
    7: "MOSTLY_Q8_0",
    8: "MOSTLY_Q5_0",
    9: "MOSTLY_Q5_1",
    10: "MOSTLY_Q2_K",
    11: "MOSTLY_Q3_K_S",
    12: "MOSTLY_Q3_K_M",
    13: "MOSTLY_Q3_K_L",
    14: "MOSTLY_Q4_K_S",
    15: "MOSTLY_Q4_K_M",
    16: "MOSTLY_Q5_K_S",
    17: "MOSTLY_Q5_K_M",
    18: "MOSTLY_Q6_K",
    19: "MOSTLY_IQ2_XXS",
    20: "MOSTLY_IQ2_XS",
    21: "MOSTLY_Q2_K_S",
    22: "MOSTLY_IQ3_XS",
    23: "MOSTLY_IQ3_XXS",
    24: "MOSTLY_IQ1_S",
    25: "MOSTLY_IQ4_NL",
    26: "MOSTLY_IQ3_S",
    27: "MOSTLY_IQ3_M",
    28: "MOSTLY_IQ2_S",
    29: "MOSTLY_IQ2_M",
    30: "MOSTLY_IQ4_XS",
    31: "MOSTLY_IQ1_M",
    32: "MOSTLY_BF16",
    36: "MOSTLY_TQ1_0",
    37: "MOSTLY_TQ2_0",
    38: "MOSTLY_MXFP4_MOE",
    39: "MOSTLY_NVFP4",
    40: "MOSTLY_Q1_0",
    1024: "GUESSED",
}
"""`gguf.LlamaFileType`: number to name."""

MAX_LISTED_NAMES: Final = 4096
"""Names taken from `tokenizer.chat_templates`."""

_DESCRIPTION: Final = (TYPE, ARCHITECTURE, NAME, BASENAME, SIZE_LABEL, FILE_TYPE, QUANTIZED_BY, LICENSE)
_ORIGIN: Final = (REPO_URL, SOURCE_REPO_URL)
_TOKENIZER: Final = (MODEL, PRE, TOKENS, KINDS, BOS_ID, EOS_ID, ADD_BOS, ADD_EOS)
_WANTED: Final = frozenset((*_DESCRIPTION, *_ORIGIN, *_TOKENIZER, *SPLIT_KEYS))
_BLOCK_COUNT_SUFFIX: Final = BLOCK_COUNT.removeprefix("{arch}")
_INTEGERS: Final = frozenset(kind for kind in ValueType if "INT" in kind.name)
_FOREIGN_STARTS: Final = (
    (b"version https://git-lfs", "a Git LFS pointer (the file itself was not downloaded)"),
    (b"PK\x03\x04", "a ZIP archive (a PyTorch checkpoint?)"),
    (b"lmgg", "a GGML file, older than GGUF"),
    (b"fmgg", "a GGMF file, older than GGUF"),
    (b"tjgg", "a GGJT file, older than GGUF"),
    (b"<", "markup (a web page that was saved in its place?)"),
    (b"{", "JSON text"),
)
_STARTS_SHOWN: Final = 24
_FIRST_MISSING: Final = "the first shard, which holds the template, is missing"


def extract(model_file: ModelFile) -> FileResult:
    """The templates and metadata of one GGUF file.

    Out: ANALYSED, NO_TEMPLATE, SKIPPED (a file of a role that needs no template, a later shard, a split model without
    its first) or NOT_A_MODEL (another format). Of a split model the file is the first, the others are held against it.
    Raises UnreadableError for GGUF that is broken or beyond a limit, OSError as `open` does.
    """
    path = Path(model_file.path)
    with LocalFile(path) as source:
        start = source.read(0, _STARTS_SHOWN)
        if not start.startswith(MAGIC):
            return FileResult(model_file, Outcome.NOT_A_MODEL, reason=f"not GGUF: {_describe_start(start)}")
        reader = HeaderReader(source, path.name)
        return _Extraction(model_file, source, reader, reader.read(_is_wanted)).result()


def _is_wanted(key: str) -> bool:
    return key in _WANTED or key.startswith(CHAT_TEMPLATE) or key.endswith(_BLOCK_COUNT_SUFFIX)


def _describe_start(start: bytes) -> str:
    if not start:
        return "the file is empty"
    for sign, meaning in _FOREIGN_STARTS:
        if start.startswith(sign):
            return f"it looks like {meaning}"
    if start[8:9] == b"{":
        return "it looks like a safetensors file"
    return f"it begins with {start[:4]!r}"


class _Extraction:
    """One header on its way to a FileResult; collects notes."""

    def __init__(self, model_file: ModelFile, source: RangeReader, reader: HeaderReader, header: Header) -> None:
        self._file = model_file
        self._source = source
        self._reader = reader
        self._order = ">" if header.big_endian else "<"
        self._header = header
        self._fields = header.fields
        self._notes: list[str] = []

    def result(self) -> FileResult:
        metadata = self._metadata()
        split = split_notes(self._file, self._header)
        why = self._why_not_looked_at(metadata)
        if why is not None:
            return FileResult(self._file, Outcome.SKIPPED, metadata=metadata, reason=why, notes=(*split, *self._notes))
        templates, notes = settle(self._templates())
        self._compare_with_list({template.variant for template in templates})
        outcome, reason = (Outcome.ANALYSED, None) if templates else self._without_template(metadata)
        return FileResult(self._file, outcome, templates, metadata, reason, notes=(*split, *notes, *self._notes))

    def _metadata(self) -> GgufMetadata:
        architecture = self._text(ARCHITECTURE)
        bos, eos = self._token(BOS_ID, ADD_BOS), self._token(EOS_ID, ADD_EOS)
        return GgufMetadata(
            architecture=architecture,
            name=self._text(NAME),
            basename=self._remark(BASENAME),
            size_label=self._remark(SIZE_LABEL),
            file_type=self._file_type(),
            quantized_by=self._remark(QUANTIZED_BY),
            license=self._remark(LICENSE),
            repo_url=self._remark(REPO_URL) or self._remark(SOURCE_REPO_URL),
            tokenizer_pre=self._text(PRE),
            block_count=self._integer(BLOCK_COUNT.format(arch=architecture)),
            split_no=self._integer(SPLIT_NO),
            split_count=self._integer(SPLIT_COUNT),
            bos=bos,
            eos=eos,
            role=self._role(architecture),
            used=self._used_tokens(bos, eos),
        )

    def _role(self, architecture: str | None) -> Role | None:
        return role_of(
            Path(self._file.path).name,
            kind=self._text(TYPE),
            architecture=architecture,
            name=self._text(NAME),
            has_tensors=self._header.tensor_count > 0 or is_first(self._header),
            has_tokens=TOKENS in self._fields or MODEL in self._fields,
        )

    def _why_not_looked_at(self, metadata: ModelMetadata) -> str | None:
        """Why llama.cpp would read no template of this file, even if there were one."""
        why = self._why_none_is_read(metadata)
        if why is not None and any(key.startswith(CHAT_TEMPLATE) for key in self._fields):
            self._notes.append("it carries a chat template, which llama.cpp does not read")
        return why

    def _why_none_is_read(self, metadata: ModelMetadata) -> str | None:
        if metadata.role in WITHOUT_TEMPLATE:
            return WHY_NO_TEMPLATE[Role(metadata.role)]
        if not metadata.split_no:
            return None
        if self._is_first_missing():
            return _FIRST_MISSING
        total = "" if metadata.split_count is None else f" of {metadata.split_count}"
        return f"later shard {metadata.split_no + 1}{total}: the template stands in the first"

    def _without_template(self, metadata: ModelMetadata) -> tuple[Outcome, str]:
        if metadata.role is not None:
            return Outcome.SKIPPED, WHY_NO_TEMPLATE[Role(metadata.role)]
        if self._is_first_missing():
            return Outcome.SKIPPED, _FIRST_MISSING
        return Outcome.NO_TEMPLATE, f"no key {CHAT_TEMPLATE}"

    def _is_first_missing(self) -> bool:
        """Whether the file stands for a split model whose first shard is not there."""
        shard = shard_of(Path(self._file.path).name) if self._file.shards else None
        return shard is not None and shard.number != 1

    def _templates(self) -> Iterator[ChatTemplate]:
        # Sorted, so that `tokenizer.chat_template` wins over a key that names the default variant.
        for key in sorted(self._fields):
            if key == CHAT_TEMPLATE:
                yield ChatTemplate(DEFAULT, self._string(key), key)
            elif key.startswith(f"{CHAT_TEMPLATE}."):
                yield ChatTemplate(key.removeprefix(f"{CHAT_TEMPLATE}.") or "(no name)", self._string(key), key)
            elif key.startswith(CHAT_TEMPLATE) and key != CHAT_TEMPLATES:
                self._notes.append(f"key {key!r} is no template that llama.cpp knows: not taken")

    def _compare_with_list(self, variants: set[str]) -> None:
        array = self._string_array(CHAT_TEMPLATES)
        if array is None:
            return
        if array.count > MAX_LISTED_NAMES:
            self._notes.append(f"{CHAT_TEMPLATES} lists {array.count} names; {MAX_LISTED_NAMES} were compared")
        listed = {_decode(name) for name in self._reader.strings(array, 0, MAX_LISTED_NAMES)}
        carried = {variant for variant in variants if f"{CHAT_TEMPLATE}.{variant}" in self._fields}
        for name in sorted(listed - variants):
            self._notes.append(f"{CHAT_TEMPLATES} lists {name!r}, but there is no key {CHAT_TEMPLATE}.{name}")
        for name in sorted(carried - listed):
            self._notes.append(f"{CHAT_TEMPLATE}.{name} is not listed in {CHAT_TEMPLATES}")

    def _token(self, id_key: str, added_key: str) -> SpecialToken:
        number = self._integer(id_key)
        added = self._boolean(added_key)
        if number is None:
            return SpecialToken(added=added)
        return SpecialToken(number, self._token_text(id_key, number), added)

    def _token_text(self, id_key: str, number: int) -> str | None:
        tokens = self._string_array(TOKENS)
        if tokens is None:
            return None
        if not 0 <= number < tokens.count:
            self._notes.append(f"{id_key} is {number}, outside the {tokens.count} tokens of {TOKENS}")
            return None
        return _decode(self._reader.strings(tokens, number, number + 1)[0])

    def _used_tokens(self, bos: SpecialToken, eos: SpecialToken) -> UsedTokens | None:
        """What llama.cpp uses in place of what the file says; None, and a note, where it would not load the model."""
        model, pre, tokens = self._text(MODEL), self._text(PRE), self._string_array(TOKENS)
        refused = self._refused_ids() or why_not_loaded(model, pre)
        if refused is not None:
            self._notes.append(refused)
            return None
        tokenizer = None if model is None else tokenizer_of(model, pre)
        if tokenizer is None or tokens is None:
            return None
        return used_tokens(tokenizer, bos, eos, lambda number: self._raw_token(tokens, number))

    def _refused_ids(self) -> str | None:
        for key in (BOS_ID, EOS_ID):
            field = self._fields.get(key)
            if field is not None and field.type is not ValueType.UINT32:
                return f"llama.cpp {BUILD} does not run this model: {key} is {describe_type(field)}, not UINT32"
        return None

    def _raw_token(self, tokens: ArrayValue, number: int) -> RawToken | None:
        if not 0 <= number < tokens.count:
            return None
        return RawToken(self._reader.strings(tokens, number, number + 1)[0], self._kind(number))

    def _kind(self, number: int) -> int | None:
        field = self._fields.get(KINDS)
        if field is None or not isinstance(field.value, ArrayValue):
            return None
        types = field.value
        if types.item_type is not ValueType.INT32 or number >= types.count:
            return None
        data = self._source.read(types.offset + 4 * number, 4)
        return int(struct.unpack(f"{self._order}i", data)[0]) if len(data) == 4 else None

    def _file_type(self) -> str | None:
        number = self._integer(FILE_TYPE)
        return None if number is None else FILE_TYPES.get(number, str(number))

    def _remark(self, key: str) -> str | None:
        """A text that llama.cpp does not read: another type there is a note, for the model loads all the same."""
        field = self._fields.get(key)
        if field is not None and field.type is not ValueType.STRING:
            self._notes.append(f"{key} is {describe_type(field)}, not a string: not taken")
            return None
        return self._text(key)

    def _text(self, key: str) -> str | None:
        return _decode(self._string(key)) if key in self._fields else None

    def _string(self, key: str) -> bytes:
        field = self._fields[key]
        if not isinstance(field.value, bytes):
            raise self._reader.wrong_type(key, field, "a string")
        return field.value

    def _integer(self, key: str) -> int | None:
        field = self._fields.get(key)
        if field is None:
            return None
        if field.type not in _INTEGERS or not isinstance(field.value, int):
            raise self._reader.wrong_type(key, field, "an integer")
        return field.value

    def _boolean(self, key: str) -> bool | None:
        field = self._fields.get(key)
        if field is None:
            return None
        if not isinstance(field.value, bool):
            raise self._reader.wrong_type(key, field, "a boolean")
        return field.value

    def _string_array(self, key: str) -> ArrayValue | None:
        field = self._fields.get(key)
        if field is None:
            return None
        if not isinstance(field.value, ArrayValue) or field.value.item_type is not ValueType.STRING:
            raise self._reader.wrong_type(key, field, "an array of strings")
        return field.value


def _decode(value: bytes) -> str:
    return value.decode("utf-8", errors="replace")
