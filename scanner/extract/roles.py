"""What a GGUF file is where it is no model of its own.

The keys: `general.type` is `model`, `adapter`, `imatrix` or `mmproj` (`gguf.constants.GGUFType`; llama.cpp's
`convert_lora_to_gguf.py`, `imatrix` and `convert_hf_to_gguf.py --mmproj` write them), and the architecture of every
projector is `clip` (llama.cpp's `tools/mtmd/clip.cpp`). The names, looked at only where the keys leave it open:
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md#gguf-naming-convention has the prefixes `mmproj` and `mtp` (a
draft module) and the type `LoRA`. That a file is a draft for speculative decoding stands in no key; publishers write it
into its name (`general.name`, or the file's).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from scanner.results import Role

CLIP: Final = "clip"
"""The architecture of projectors."""

_BY_TYPE: Final[Mapping[str, Role]] = {
    "mmproj": Role.PROJECTOR,
    "adapter": Role.ADAPTER,
    "imatrix": Role.IMATRIX,
}
_DRAFT_WORD: Final = re.compile(r"(?:^mtp-)|(?:(?<![A-Za-z])draft(?![A-Za-z]))", re.IGNORECASE)

WHY_NO_TEMPLATE: Final[Mapping[Role, str]] = {
    Role.PROJECTOR: "a multimodal projector: it goes with a model, and needs no template",
    Role.ADAPTER: "an adapter: it goes with a model, and needs no template",
    Role.DRAFT: "a draft model, by its name: it goes with a model, whose template is used",
    Role.VOCABULARY: "a vocabulary only: without tensors llama.cpp does not load it as a model",
    Role.IMATRIX: "an importance matrix, not a model",
}
"""Why a file of a role is not told to be a model without a template."""

WITHOUT_TEMPLATE: Final = frozenset((Role.PROJECTOR, Role.ADAPTER, Role.IMATRIX))
"""Roles whose templates, if they have any, llama.cpp does not read."""


def role_of(
    file_name: str, *, kind: str | None, architecture: str | None, name: str | None, has_tensors: bool, has_tokens: bool
) -> Role | None:
    """The role of a GGUF file; None: a model.

    In: the file's name, its `general.type`, `general.architecture` and `general.name`, and what it holds. The first
    shard of a split model has tensors, even where they all stand in the others.
    """
    if architecture == CLIP:
        return Role.PROJECTOR
    if kind is not None and kind in _BY_TYPE:
        return _BY_TYPE[kind]
    if kind is None and architecture is None:
        # An older projector, or a file that says nothing of itself.
        return Role.PROJECTOR if file_name.lower().startswith("mmproj-") else None
    if not has_tensors and has_tokens:
        return Role.VOCABULARY
    return Role.DRAFT if _is_draft(file_name, name) else None


def _is_draft(file_name: str, name: str | None) -> bool:
    return _DRAFT_WORD.search(file_name) is not None or (name is not None and _DRAFT_WORD.search(name) is not None)
