"""Model directories in the Hugging Face layout.

Where a variant stands in several places, the order here is, first wins: `chat_template.jinja` (`default`),
`additional_chat_templates/NAME.jinja` (`NAME`), `chat_template.json`, `tokenizer_config.json`. That is the order of
`transformers` for a tokenizer (`tokenization_utils_base`: template files take priority over the tokenizer's
configuration, and then *all* of the configuration's templates are ignored), with `chat_template.json` where its
processors look for it. Two places differ, and are noted rather than followed: a processor (`processing_utils`) takes a
legacy `chat_template.json` before `chat_template.jinja`, and refuses it beside additional templates; llama.cpp's
converter (`gguf.vocab.SpecialVocab`) takes the configuration's template before any file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from scanner.errors import UnreadableError
from scanner.extract.jinja_file import MAX_TEMPLATE_BYTES
from scanner.extract.source import read_whole
from scanner.extract.variants import DEFAULT, settle
from scanner.results import ChatTemplate, FileResult, ModelFile, ModelMetadata, Outcome, Role, SpecialToken

TEMPLATE_FILE: Final = "chat_template.jinja"
TEMPLATE_FOLDER: Final = "additional_chat_templates"
TEMPLATE_JSON: Final = "chat_template.json"
TOKENIZER_CONFIG: Final = "tokenizer_config.json"
MODEL_CONFIG: Final = "config.json"
ADAPTER_CONFIG: Final = "adapter_config.json"
WEIGHTS: Final = ("model.safetensors", "pytorch_model.bin", "consolidated.safetensors")
"""The weights of a whole model in one file; in several they have an index, the same name and `.index.json`."""

MAX_JSON_BYTES: Final = 16 * 1024 * 1024
"""A longer JSON file is not read: 20 bytes of memory for each of its bytes is what the worst JSON takes."""
MAX_ADDITIONAL_BYTES: Final = 2 * MAX_TEMPLATE_BYTES
"""All files of `additional_chat_templates` together."""

_Object = Mapping[str, object]


def extract(model_file: ModelFile) -> FileResult:
    """The templates and metadata of one model directory.

    Out: ANALYSED, NO_TEMPLATE or SKIPPED (an adapter without a template). Raises UnreadableError where one of the files
    that carry templates is broken or beyond a limit, OSError where it cannot be read.
    """
    folder = Path(model_file.path)
    config = _read_object(folder / TOKENIZER_CONFIG) or {}
    templates, notes = settle(_found(folder, config))
    notes += _ignored_by_transformers(templates)
    architecture, more = _architecture(folder)
    metadata = ModelMetadata(
        architecture=architecture,
        bos=_special_token(config, "bos_token", "add_bos_token"),
        eos=_special_token(config, "eos_token", "add_eos_token"),
        role=Role.ADAPTER if _is_adapter(folder) else None,
    )
    outcome, reason = _outcome(metadata.role, bool(templates))
    return FileResult(model_file, outcome, templates, metadata, reason, notes=(*notes, *more))


def _is_adapter(folder: Path) -> bool:
    """Whether a folder is one as PEFT writes it, with the adapter's weights and no model's
    (https://huggingface.co/docs/peft/developer_guides/checkpoint)."""
    if not (folder / ADAPTER_CONFIG).is_file():
        return False
    return not any((folder / name).is_file() for each in WEIGHTS for name in (each, f"{each}.index.json"))


def _outcome(role: str | None, has_templates: bool) -> tuple[Outcome, str | None]:
    if has_templates:
        return Outcome.ANALYSED, None
    if role == Role.ADAPTER:
        return Outcome.SKIPPED, "an adapter: it goes with a model, and needs no template"
    return Outcome.NO_TEMPLATE, "no chat template in any of the places where transformers looks"


def _found(folder: Path, config: _Object) -> Iterator[ChatTemplate]:
    """All templates, those that win before those that lose."""
    path = folder / TEMPLATE_FILE
    if path.is_file():
        yield ChatTemplate(DEFAULT, read_whole(path, MAX_TEMPLATE_BYTES), path.name)
    yield from _additional(folder / TEMPLATE_FOLDER)
    legacy = _read_object(folder / TEMPLATE_JSON)
    if legacy is not None:
        source = _text(legacy.get("chat_template"), TEMPLATE_JSON, "chat_template")
        yield ChatTemplate(DEFAULT, _encode(source), TEMPLATE_JSON)
    yield from _configured(config.get("chat_template"))


def _additional(folder: Path) -> Iterator[ChatTemplate]:
    if not folder.is_dir():
        return
    left = MAX_ADDITIONAL_BYTES
    for path in sorted(each for each in folder.iterdir() if each.suffix == ".jinja"):
        source = read_whole(path, min(left, MAX_TEMPLATE_BYTES))
        left -= len(source)
        yield ChatTemplate(_printable(path.stem), source, _printable(f"{folder.name}/{path.name}"))


def _configured(value: object) -> Iterator[ChatTemplate]:
    """The templates of `tokenizer_config.json`: nothing, one text, a list of names and texts, or an object of them."""
    for name, text in _named(value):
        source = _encode(_text(text, TOKENIZER_CONFIG, f"chat_template {name!r}"))
        yield ChatTemplate(_printable(name), source, TOKENIZER_CONFIG)


def _named(value: object) -> Iterator[tuple[str, object]]:
    if value is None:
        return
    if isinstance(value, str):
        yield DEFAULT, value
    elif isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        # Of two entries with one name the later counts in transformers, which builds a dictionary of the list.
        for entry in reversed(value):
            if not isinstance(entry, dict):
                raise _wrong_type(TOKENIZER_CONFIG, "chat_template", "objects with name and template", entry)
            yield _text(entry.get("name"), TOKENIZER_CONFIG, "chat_template name"), entry.get("template")
    else:
        raise _wrong_type(TOKENIZER_CONFIG, "chat_template", "a string or a list", value)


def _ignored_by_transformers(templates: tuple[ChatTemplate, ...]) -> tuple[str, ...]:
    origins = {template.origin for template in templates}
    if not any(origin == TEMPLATE_FILE or origin.startswith(f"{TEMPLATE_FOLDER}/") for origin in origins):
        return ()
    return tuple(
        f"variant {template.variant!r} stands only in {TOKENIZER_CONFIG}: transformers ignores it, because there are "
        "template files"
        for template in templates
        if template.origin == TOKENIZER_CONFIG and f"({TOKENIZER_CONFIG})" not in template.variant
    )


def _architecture(folder: Path) -> tuple[str | None, tuple[str, ...]]:
    """The architecture of `config.json`; notes where that file, which carries no template, is broken."""
    try:
        config = _read_object(folder / MODEL_CONFIG) or {}
    except (UnreadableError, OSError) as error:
        return None, (f"architecture unknown: {error}",)
    listed = config.get("architectures")
    first = listed[0] if isinstance(listed, list) and listed else None
    for name in (first, config.get("model_type")):
        if isinstance(name, str):
            return _printable(name), ()
    return None, ()


def _special_token(config: _Object, key: str, added_key: str) -> SpecialToken:
    value = config.get(key)
    if isinstance(value, dict):
        value = value.get("content")
    text = None if value is None else _printable(_text(value, TOKENIZER_CONFIG, key))
    added = config.get(added_key)
    if added is not None and not isinstance(added, bool):
        raise _wrong_type(TOKENIZER_CONFIG, added_key, "true or false", added)
    return SpecialToken(text=text, added=added)


def _read_object(path: Path) -> _Object | None:
    """The JSON object in a file; None where there is no such file."""
    if not path.is_file():
        return None
    value = _parse_json(read_whole(path, MAX_JSON_BYTES), path.name)
    if not isinstance(value, dict):
        raise _wrong_type(path.name, "the whole", "a JSON object", value)
    return value


def _parse_json(data: bytes, name: str) -> object:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _bad_json(name, error.start, "UTF-8 text") from None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise _bad_json(name, len(text[: error.pos].encode()), f"JSON ({error.msg})") from None
    except (RecursionError, MemoryError):
        raise UnreadableError(f"{name}: limit: JSON nested too deeply or too large", expected="simpler JSON") from None
    except ValueError:
        # Python refuses to convert integers of thousands of digits.
        raise UnreadableError(f"{name}: limit: a number of too many digits", expected="JSON") from None


def _bad_json(name: str, offset: int, expected: str) -> UnreadableError:
    return UnreadableError(f"{name}: at byte {offset}: expected {expected}", offset=offset, expected=expected)


def _text(value: object, name: str, what: str) -> str:
    if not isinstance(value, str):
        raise _wrong_type(name, what, "a string", value)
    return value


def _wrong_type(name: str, what: str, expected: str, found: object) -> UnreadableError:
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "nothing"}
    kind = kinds.get(type(found), "a number")
    return UnreadableError(f"{name}: expected {expected} for {what}, found {kind}", expected=f"{expected} for {what}")


def _encode(text: str) -> bytes:
    # JSON can escape half of a surrogate pair, which has no UTF-8; the bytes still tell such texts apart.
    return text.encode("utf-8", errors="surrogatepass")


def _printable(text: str) -> str:
    return text.encode("utf-8", errors="replace").decode("utf-8")
