"""Which parser of llama.cpp reads the model's answers, told from the template's text (`chat.md` section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

AUTOPARSER = "autoparser"
"""The generic one, when no handler matches."""


@dataclass(frozen=True, slots=True)
class Handler:
    """A handler and its signs: all of `present`, none of `absent`, and one of `either` if there are any."""

    name: str
    present: tuple[bytes, ...]
    absent: tuple[bytes, ...] = ()
    either: tuple[bytes, ...] = ()

    def matches(self, source: bytes) -> bool:
        """Whether a source carries the signs."""
        return (
            all(sign in source for sign in self.present)
            and not any(sign in source for sign in self.absent)
            and (not self.either or any(sign in source for sign in self.either))
        )


HANDLERS = (
    Handler("Ministral/Magistral Large 3", (b"[SYSTEM_PROMPT]", b"[TOOL_CALLS]", b"[ARGS]"), (b"[CALL_ID]",)),
    Handler("GPT-OSS", (b"<|channel|>",)),
    Handler("Muse Glimmer", (b"<atem:function_calls>", b"<|eom|>")),
    Handler("Functionary v3.2", (b">>>all", b">>>${recipient}")),
    Handler("Kimi K2 Thinking", (b"<|tool_calls_section_begin|>", b"<|tool_call_begin|>")),
    Handler("Kimi K3", (b"<|open|>", b"<|close|>", b"<|end_of_msg|>")),
    Handler("Ling 3.0", (b"<role>ASSISTANT</role>", b"<arg_key>")),
    Handler("Cohere2 MoE", (b"<|START_TEXT|>", b"<|START_ACTION|>")),
    Handler("LFM2", (b"<|tool_list_start|>", b"<|tool_list_end|>")),
    Handler("LFM2.5", (b"List of tools: [",), (b"<|tool_list_start|>",)),
    Handler("GigaChatV3", (b"<|role_sep|>", b"<|message_sep|>"), (b"<|function_call|>",)),
    Handler("MiniMax-M3", (b"]<]minimax[>[", b"<tool_call>", b"<invoke name=")),
    Handler("DeepSeek V3.2/V4", (b"dsml_token", b"DSML"), either=(b"function_calls", b"tool_calls")),
    Handler("Gemma 4", (b"'<|tool_call>call:'",)),
    Handler("MiniCPM5", (b"Tool usage guidelines:", b'<function name="', b'<param name="')),
    Handler(
        "Qwen3-Coder",
        (b"<tool_call>", b"<function=", b"<parameter="),
        (b"'<tool_call><function=' ~ tool_call.name ~ '>'",),
    ),
)
"""The first match wins."""

CURRENT_GEMMA4 = b"{#- OpenAI Chat Completions:"


@lru_cache(maxsize=64)
def detect(source: bytes) -> str:
    """The name of the handler, or `autoparser`."""
    return next((handler.name for handler in HANDLERS if handler.matches(source)), AUTOPARSER)


def is_outdated_gemma4(source: bytes) -> bool:
    """Whether llama.cpp would apply its workarounds for old Gemma 4 templates."""
    return detect(source) == "Gemma 4" and CURRENT_GEMMA4 not in source
