"""Writes the demo collection: GGUF files and model directories with chat templates of our own.

Every file is real enough to be read by any GGUF reader and too small to be run: the tensors are a few numbers. The
same bytes come out each time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

NOT_FOR_THE_ENGINE: Mapping[str, str] = {
    "endless": "would keep a real server busy for weeks: llama.cpp has no limit on steps",
}
"""Demo templates that must not be put to the real engine, and why."""

_PUBLISHER = "capscan-demo"
_BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
_TEMPLATE_KEY = "tokenizer.chat_template"
# llama.cpp's token types: 2 unknown, 3 control, 6 byte.
_UNKNOWN, _CONTROL, _BYTE = 2, 3, 6
_WIDTH = 32


@dataclass(frozen=True, slots=True)
class _Model:
    """A model of the collection: `template` and `variants` (name, template) name files of `templates`; `quantizations`
    are the files it comes in."""

    name: str
    size: str
    architecture: str
    template: str | None
    bos: str = "<s>"
    eos: str = "</s>"
    license: str = "mit"
    variants: tuple[tuple[str, str], ...] = ()
    quantizations: tuple[str, ...] = ("Q4_K_M",)

    @property
    def stem(self) -> str:
        return f"{self.name}-{self.size}"


_MODELS = (
    _Model("Harbour", "1B", "llama", "plain-chatml", "<|im_start|>", "<|im_end|>", "apache-2.0"),
    _Model(
        "Halyard",
        "8B",
        "llama",
        "header-ids",
        "<|begin_of_text|>",
        "<|eot_id|>",
        "other",
        quantizations=("Q4_K_M", "Q8_0", "F16"),
    ),
    _Model("Zephyrine", "7B", "llama", "alternating", quantizations=("Q5_K_M",)),
    _Model(
        "Qanat", "4B", "qwen3", "thinking", "<|im_start|>", "<|im_end|>", "apache-2.0", quantizations=("Q4_K_M", "Q8_0")
    ),
    _Model("Qanat-Strict", "27B", "qwen3", "strict-effort", "<|im_start|>", "<|im_end|>", "apache-2.0"),
    _Model("Garnet-Classic", "2B", "gemma", "no-system", "<bos>", "<eos>", "gemma"),
    _Model("Garnet", "1B", "gemma3", "silent-system", "<bos>", "<eos>", "gemma"),
    _Model(
        "Channel", "20B", "gpt-oss", "channels", "<|startoftext|>", "<|return|>", "apache-2.0", quantizations=("MXFP4",)
    ),
    _Model("Deepwell", "14B", "deepseek2", "drops-reasoning", quantizations=("Q4_K_M",)),
    _Model(
        "Commander",
        "35B",
        "command-r",
        "turns",
        "<BOS_TOKEN>",
        "<|END_OF_TURN_TOKEN|>",
        "cc-by-nc-4.0",
        (("tool_use", "turns-tool-use"), ("rag", "turns-rag")),
    ),
    _Model("Glimpse", "9B", "glm4", "keeps-reasoning", "[gMASK]", "<|endoftext|>"),
    _Model("Endless", "1B", "llama", "endless"),
    _Model("Basalt", "3B", "llama", None),
)


def templates() -> dict[str, bytes]:
    """All demo templates, name → bytes, in name order."""
    folder = resources.files("scanner.demo") / "templates"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".jinja")), key=lambda file: file.name)
    return {file.name.removesuffix(".jinja"): file.read_bytes() for file in files}


def make_collection(directory: Path) -> None:
    """Write the collection into `directory`, which is made if need be: under 1 MB, in well under 3 seconds.

    Files of the same names are overwritten. Raises OSError where that is not possible.
    """
    sources = templates()
    gguf_files = directory / "gguf"
    gguf_files.mkdir(parents=True, exist_ok=True)
    for model in _MODELS:
        for quantization in model.quantizations:
            _write_gguf(gguf_files / f"{model.stem}-{quantization}.gguf", model, quantization, sources)
    _write_projector(gguf_files / "mmproj-Garnet-1B-F16.gguf")
    _write_shard(gguf_files / "Deepwell-14B-Q8_0-00002-of-00003.gguf")
    _write_truncated(gguf_files / "Harbour-1B-Q8_0.gguf", gguf_files / "Harbour-1B-Q4_K_M.gguf")
    _write_directories(directory / "huggingface", sources)


# --- GGUF ------------------------------------------------------------------------------------------------------------


def _write_gguf(path: Path, model: _Model, quantization: str, sources: Mapping[str, bytes]) -> None:
    from gguf import GGUFValueType, GGUFWriter

    writer = GGUFWriter(path, model.architecture)
    _add_general(writer, model, quantization)
    writer.add_block_count(1)
    writer.add_context_length(4096)
    writer.add_embedding_length(_WIDTH)
    writer.add_feed_forward_length(2 * _WIDTH)
    writer.add_head_count(2)
    _add_vocabulary(writer, model)
    # `add_chat_template` lists the variants in an order that changes from run to run.
    for name, template in model.variants:
        writer.add_key_value(f"{_TEMPLATE_KEY}.{name}", sources[template], GGUFValueType.STRING)
    if model.variants:
        writer.add_array("tokenizer.chat_templates", [name for name, _ in model.variants])
    if model.template:
        writer.add_key_value(_TEMPLATE_KEY, sources[model.template], GGUFValueType.STRING)
    _finish(writer, "token_embd.weight")


def _add_general(writer: Any, model: _Model, quantization: str) -> None:
    from gguf import LlamaFileType

    known = {kind.name.removeprefix("MOSTLY_"): kind for kind in LlamaFileType}
    # The library calls some of them by another name than the files do.
    kind = known.get(quantization) or known.get(f"{quantization}_MOE") or LlamaFileType.GUESSED
    writer.add_type("model")
    writer.add_name(f"{model.name} {model.size}")
    writer.add_basename(model.name)
    writer.add_size_label(model.size)
    writer.add_file_type(kind)
    writer.add_quantized_by(_PUBLISHER)
    writer.add_license(model.license)
    writer.add_repo_url(f"https://example.org/{_PUBLISHER}/{model.stem}")


def _add_vocabulary(writer: Any, model: _Model) -> None:
    tokens = ["<unk>", model.bos, model.eos, *_BYTES]
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([_UNKNOWN, _CONTROL, _CONTROL, *[_BYTE] * len(_BYTES)])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)


def _write_projector(path: Path) -> None:
    """The part of a multimodal model that turns images into embeddings: it has no chat template to have."""
    from gguf import GGUFWriter

    writer = GGUFWriter(path, "clip")
    writer.add_type("mmproj")
    writer.add_name("Garnet 1B")
    writer.add_clip_has_vision_encoder(True)
    _finish(writer, "v.patch_embd.weight")


def _write_shard(path: Path) -> None:
    """The second of three files of one model: metadata is in the first."""
    from gguf import GGUFWriter

    writer = GGUFWriter(path, "deepseek2")
    writer.add_uint16("split.no", 1)
    writer.add_uint16("split.count", 3)
    writer.add_int32("split.tensors.count", 3)
    _finish(writer, "blk.0.attn_q.weight")


def _write_truncated(path: Path, whole: Path) -> None:
    """A download that broke off in the middle of the vocabulary."""
    path.write_bytes(whole.read_bytes()[:1500])


def _finish(writer: Any, tensor: str) -> None:
    import numpy as np

    writer.add_tensor(tensor, np.zeros((_WIDTH, 4), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# --- Hugging Face ----------------------------------------------------------------------------------------------------


def _write_directories(root: Path, sources: Mapping[str, bytes]) -> None:
    """Model directories as they stand on a hub: the template in the configuration, in files of its own, in both."""
    _write_directory(root / "Qanat-4B", "qwen3", {"chat_template": sources["thinking"].decode()}, {})
    _write_directory(
        root / "Commander-35B",
        "cohere",
        {},
        {
            "chat_template.jinja": sources["turns"],
            "additional_chat_templates/tool_use.jinja": sources["turns-tool-use"],
            "additional_chat_templates/rag.jinja": sources["turns-rag"],
        },
    )
    named = [{"name": name, "template": sources[name_of].decode()} for name, name_of in _NAMED]
    _write_directory(root / "Lantern-7B", "llama", {"chat_template": named}, {})
    _write_directory(root / "Mosaic-VL-2B", "llava", {}, {"chat_template.jinja": sources["parts-only"]})
    _write_directory(root / "Rawhide-3B", "llama", {}, {"chat_template.jinja": sources["not-for-llama-cpp"]})


_NAMED = (("default", "plain-chatml"), ("tool_use", "header-ids"))


def _write_directory(
    directory: Path, architecture: str, configuration: Mapping[str, object], files: Mapping[str, bytes]
) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    _write_json(directory / "config.json", {"model_type": architecture, "num_hidden_layers": 1})
    tokens = {"bos_token": "<s>", "eos_token": {"content": "</s>", "special": True}, "add_bos_token": True}
    _write_json(directory / "tokenizer_config.json", {**tokens, **configuration})
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
