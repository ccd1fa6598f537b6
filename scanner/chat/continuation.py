"""How each handler goes on with an assistant's own words: the turn's header, and the tags around the thought before it.

Told from a real server's prompts for small templates of one generation prompt and every handler's signs: most handlers
write a header of their own, whatever the template's generation prompt is (`tests/cases/handlers.json`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

DSML_V32 = b"function_calls"
"""Tells DeepSeek V3.2 from V4."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """What is written between the conversation so far and the words to go on with.

    `header` opens the turn (None: the template's own generation prompt does). `start` and `end` stand around a thought
    (both empty: the handler knows none, and drops it), `text` before the words. `empty_start` is what stands before an
    empty thought, where that differs from `start`. `only_words`: it goes on with words whatever was asked for.
    """

    header: bytes | None
    start: bytes = b""
    end: bytes = b""
    text: bytes = b""
    empty_start: bytes | None = None
    only_words: bool = False

    @property
    def thinks(self) -> bool:
        """Whether it knows a thought."""
        return bool(self.start or self.end)

    def pieces(self, reasoning: bytes, content: bytes, *, closed: bool | None = None) -> list[tuple[bytes, bool]]:
        """What is written, as (text, whether it comes from the request): the thought even if it is empty. `closed`:
        whether it is over; by default it is unless there is nothing else."""
        if closed is None or self.only_words:
            closed = bool(content) or not reasoning or not self.thinks
        pieces = [(self.header or b"", False)]
        if self.thinks:
            start = self.start if reasoning or self.empty_start is None else self.empty_start
            pieces += [(start, False), (reasoning, True)]
        if closed or (self.empty_start is not None and not reasoning):
            # A thought that was not begun cannot be gone on with.
            pieces.append((self.end, False))
        if closed:
            pieces += [(self.text, False), (content, True)]
        return [piece for piece in pieces if piece[0]]


CHATML_HEADER = b"<|im_start|>assistant\n"
DEEPSEEK_HEADER = "<｜Assistant｜>".encode()  # noqa: RUF001 - the token's own bars
THINK = Continuation(CHATML_HEADER, b"<think>", b"</think>")
THINK_LINES = Continuation(CHATML_HEADER, b"<think>\n", b"\n</think>\n\n")
QWEN3_CODER = "Qwen3-Coder"
DEEPSEEK = "DeepSeek V3.2/V4"

CONTINUATIONS: Mapping[str, Continuation] = {
    "Ministral/Magistral Large 3": Continuation(b"", b"[THINK]", b"[/THINK]"),
    "GPT-OSS": Continuation(
        b"<|start|>assistant",
        b"<|channel|>analysis<|message|>",
        b"<|end|>",
        b"<|start|>assistant<|channel|>final<|message|>",
    ),
    "Muse Glimmer": Continuation(
        b"<|start|>assistant", b" to=self<|message|>", b"<|eom|>", b"<|start|>assistant to=user<|message|>"
    ),
    "Functionary v3.2": Continuation(
        b"<|start_header_id|>assistant<|end_header_id|>\n\n>>>", text=b"all\n", only_words=True
    ),
    "Kimi K2 Thinking": replace(THINK, header=b"<|im_assistant|>assistant<|im_middle|>"),
    "Kimi K3": Continuation(
        b'<|open|>message role="assistant"<|sep|>',
        b"<|open|>think<|sep|>",
        b"<|close|>think<|sep|>",
        b"<|open|>response<|sep|>",
    ),
    "Ling 3.0": replace(THINK, header=b"<role>ASSISTANT</role>\n"),
    "Cohere2 MoE": Continuation(
        b"<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
        b"<|START_THINKING|>",
        b"<|END_THINKING|>",
        b"<|START_TEXT|>",
    ),
    "LFM2": THINK,
    "LFM2.5": THINK,
    "GigaChatV3": Continuation(b"assistant<|role_sep|>\n", only_words=True),
    "MiniMax-M3": Continuation(None, b"<mm:think>", b"</mm:think>"),
    DEEPSEEK: replace(THINK, header=DEEPSEEK_HEADER),
    "Gemma 4": Continuation(b"", b"<|channel>thought\n", b"<channel|>"),
    "MiniCPM5": THINK_LINES,
    QWEN3_CODER: THINK_LINES,
}


def continuation_of(handler: str, source: bytes) -> Continuation | None:
    """How a handler goes on under a template of this source; None for the autoparser, which looks for tags in
    renders."""
    if handler == QWEN3_CODER and b"<think>" not in source:
        return Continuation(CHATML_HEADER)
    if handler == DEEPSEEK and DSML_V32 not in source:
        return replace(CONTINUATIONS[DEEPSEEK], empty_start=b"")
    return CONTINUATIONS.get(handler)
