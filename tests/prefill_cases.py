"""Small templates for the autoparser, and what a real server made of four requests each: `tests/cases/prefill.json`.

The templates follow the habits of real families: how they print a thought in the history, and how their generation
prompts say whether to think. `python -m tests.regenerate` asks the server again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scanner import oracle
from scanner.oracle import Answer, Question

PATH = Path(__file__).parent / "cases" / "prefill.json"

_QUESTION = {"role": "user", "content": "a"}
_THOUGHTFUL = {"role": "assistant", "content": "Hi", "reasoning_content": "because"}
_ON, _OFF = ({"chat_template_kwargs": {"enable_thinking": thinking}} for thinking in (True, False))
REQUESTS: Mapping[str, Mapping[str, Any]] = {
    "thinking": {"messages": [_QUESTION, _THOUGHTFUL], **_ON},
    "not thinking": {"messages": [_QUESTION, _THOUGHTFUL], **_OFF},
    "no thought": {"messages": [_QUESTION, {"role": "assistant", "content": "Hi"}]},
    "default": {"messages": [_QUESTION]},
}

NL = "{{ '\\n' }}"
THOUGHT = "{{ message.reasoning_content }}"
CONTENT = "{{ message.content }}"
CALL = "[CALL]{{ message.tool_calls[0].function.name }}[/CALL]"
PADDING = "x" * 80
SPLIT = "content.split('</think>')"
GRANITE = "Write your thoughts between <think></think> and write your response between <response></response>"
NEMOTRON = "<SPECIAL_10> <SPECIAL_11> <SPECIAL_12> <TOOL_RESPONSE>"
# Names `reasoning_content` without the word, which the engine looks for.
HIDDEN = "{{ message['reason' ~ 'ing_content'] }}"


def chat(turn: str = CONTENT, prompt: str = "", *, front: str = "", remark: str = "", header: str = "<|ROLE|>") -> str:
    """A template: `front`, then each message as `header` and `turn`; `prompt` ends the generation prompt."""
    comment = f"{{#- {remark} #}}" if remark else ""
    opening = header.replace("ROLE", "{{ message.role }}")
    loop = f"{{%- for message in messages %}}{opening}{turn}<|end|>{{% endfor %}}"
    asked = f"{{% if add_generation_prompt %}}{header.replace('ROLE', 'assistant')}{prompt}{{% endif %}}"
    return comment + front + loop + asked


def switch(on: str, off: str) -> str:
    """`on` or `off`, by `enable_thinking`."""
    return f"{{% if enable_thinking %}}{on}{{% else %}}{off}{{% endif %}}"


def thought(before: str, behind: str, *, inside: str = THOUGHT, when: str = "message.reasoning_content") -> str:
    """A turn that prints its thought between two texts, and its content."""
    return f"{{% if {when} %}}{before}{inside}{behind}{{% endif %}}{CONTENT}"


def calls(before: str, behind: str, otherwise: str = CONTENT) -> str:
    """A turn that prints its thought between two texts if it is a call."""
    return f"{{% if message.tool_calls %}}{before}{THOUGHT}{behind}{CALL}{{% else %}}{otherwise}{{% endif %}}"


ASSISTANT = "message.role == 'assistant'"
MODES = switch("mode: on", "mode: off")
PLAIN = "ROLE: "

HISTORY = {
    "no thought": chat(),
    "bare tags": chat(thought("<think>", "</think>")),
    "tags on lines": chat(thought(f"<think>{NL}", f"{NL}</think>{NL}{NL}")),
    "white space around tags": chat(thought(f"{NL} <think> ", f" {NL}</think>{NL} ")),
    "white space of all kinds": chat(thought("<t>{{ '\\t\\r' }}\v", "{{ '\\f' }}</t>{{ '\\r\\n' }}")),
    "a no-break space is none": chat(thought("<t>\u00a0", "</t>")),
    "square brackets": chat(thought("[THINK]", "[/THINK]")),
    "unequal tags": chat(thought("<|channel>", "[done]")),
    "the inner of two": chat(thought("<a><b>", "</b></a>")),
    "a word inside the tag": chat(thought("<|channel>thought\n", "<channel|>"), front=MODES),
    "a word behind the tag": chat(thought("<t>so: ", "</t>"), front=MODES),
    "words only": chat(thought("Thought: ", " Answer: "), front=MODES),
    "nothing around": chat(thought("", ""), front=MODES, header=PLAIN),
    "a start only": chat(thought("<t>", ""), front=MODES, header=PLAIN),
    "an end only": chat(thought("", f"{NL}</t>{NL}"), front=MODES, header=PLAIN),
    "the header is the start": chat(thought("", f"{NL}[FINAL ANSWER]{NL}"), header=f"<|ROLE|>{NL}"),
    "tags of empty thoughts, too": chat(thought(f"<t>{NL}", f"{NL}</t>{NL}", when=ASSISTANT)),
    "start printed always": chat(f"<t>{thought('', '</t>')}"),
    "behind the content": chat(CONTENT + thought("<t>", "</t>").removesuffix(CONTENT)),
    "printed twice, the second in tags": chat(thought(f"{THOUGHT}; <t>", "</t>")),
    "tag with an attribute": chat(thought('<t kind="long">', "</t>")),
    "a bracket within a tag": chat(thought("<a<b>", "</b>")),
    "a bracket behind a tag": chat(thought("<a>>", "</b>")),
    "shown in capitals": chat(thought("<t>", "</t>", inside="{{ message.reasoning_content | upper }}")),
    "only while thinking": chat(thought("<t>", "</t>", when="enable_thinking and message.reasoning_content")),
    "answers need a thought": chat(
        "{% if message.role == 'assistant' and not message.reasoning_content and messages | length == 2 %}"
        "{{ raise_exception('think') }}{% endif %}" + thought("<t>", "</t>")
    ),
}
PROMPTS = {
    "start while thinking": chat(prompt=switch("<t>", "")),
    "start and line end while thinking": chat(prompt=switch("<t>\n", "")),
    "start behind a line end": chat(prompt=switch(f"{NL}<t>", "")),
    "two starts": chat(prompt=switch("<a><b>", "")),
    "a letter as start": chat(prompt=switch("t", ""), header=PLAIN),
    "end while not thinking": chat(prompt=switch("", "</t>")),
    "end behind a line end": chat(prompt=switch("", f"{NL}</t>")),
    "end and line end": chat(prompt=switch("", f"</t>{NL}")),
    "end behind words": chat(prompt=switch("", "</t>"), header=PLAIN),
    "a word as end": chat(prompt=switch("", "quick")),
    "pair while not thinking": chat(prompt=switch("", "<t></t>")),
    "pair on lines while not thinking": chat(prompt=switch("", f"<t>{NL}</t>{NL}")),
    "start or pair": chat(prompt=switch("<t>", "<t></t>")),
    "start on a line or pair": chat(prompt=switch(f"<t>{NL}", f"<t>{NL}</t>")),
    "start or pair on lines": chat(prompt=switch(f"<t>{NL}", f"<t>{NL}{NL}</t>{NL}{NL}")),
    "start or pair with a space": chat(prompt=switch(" <t>", f" <t>{NL}</t>"), header=PLAIN),
    "start or pair with words": chat(prompt=switch("<t>", "<t>none</t>")),
    "start or end": chat(prompt=switch("<t>", "</t>")),
    "start or another": chat(prompt=switch("<t>", "<t2>")),
    "start again": chat(prompt=switch("<t>words<t>", "<t>")),
    "end again": chat(prompt=switch("<t>", "<t>words<t>")),
    "something follows": chat(prompt=switch("<t>", "") + "<go>"),
    "always a start": chat(prompt="<t>"),
    "mode in front": chat(front=MODES),
    "mode in front, start": chat(prompt=switch("<t>", ""), front=MODES + PADDING),
    "mode in front, pair": chat(prompt=switch("", f"<t>{NL}</t>{NL}"), front=MODES + PADDING),
    "mode right in front, pair": chat(prompt=switch("", "<t></t>"), front=MODES),
    "mode in front, pair while thinking": chat(prompt=switch("<t></t>", ""), front=MODES + PADDING),
    "mode in front, pair with words": chat(prompt=switch("", "<t>none</t>"), front=MODES + PADDING),
    "mode while not thinking, pair": chat(prompt=switch("", "<t></t>"), front=switch("", "quick")),
    "mode in front, 64 bytes before the pair": chat(prompt=switch("", "<t></t>"), front=MODES + "x" * 15),
    "mode in front, 63 bytes before the pair": chat(prompt=switch("", "<t></t>"), front=MODES + "x" * 14),
    "mode in front, three markers": chat(prompt=switch("", "<t></t><go>"), front=MODES + PADDING),
    "mode in front, start and word": chat(prompt=switch("", "<t>none"), front=MODES + PADDING),
    "words that could end either": chat(prompt=switch(f"t{NL}tt", "tt"), header=PLAIN),
    "an unfinished marker": chat(prompt=switch("", "<[/t]")),
    "history first, start while thinking": chat(thought("<t>", "</t>"), switch("<other>", "")),
    "a prompt that fails": chat(
        thought("<t>", "</t>"),
        "{% if not enable_thinking and messages[0].content.startswith('U_') %}{{ raise_exception('no') }}{% endif %}",
    ),
    "history first": chat(thought("<t>", "</t>"), switch("<other>", "<other></other>")),
    "start from the prompt, end from the history": chat(thought("", "</t>"), switch("<other>", ""), header=PLAIN),
    "no generation prompt, thinking in front": chat(front=switch("<t>", "")).replace("add_generation", "add_no"),
    "asked for by default": "{%- if add_generation_prompt is not defined %}{% set add_generation_prompt = true %}"
    "{% endif %}" + chat(prompt=switch("<t>", "<t></t>")),
}
CALLS = {
    "thought in calls": chat(calls("<t>", "</t>"), front=MODES),
    "thought in calls, on lines": chat(calls(f"<t>{NL}", f"{NL}</t>{NL}"), front=MODES),
    "thought in calls, pair while not thinking": chat(calls("<t>", "</t>"), switch("", "<t></t>")),
    "thought in calls, other prompt": chat(calls("<t>", "</t>"), switch("<other>", "<other></other>")),
    "thought in calls, end only": chat(calls("so ", "</t>"), switch("<other>", "<other></other>"), header=PLAIN),
    "thought in calls, words": chat(calls("so ", " then "), switch("<other>", "<other></other>"), header=PLAIN),
    "thought in calls, words only": chat(calls("so ", " then "), front=MODES),
    "thought in calls with tools": chat(thought("<t>", "</t>", when="tools and message.tool_calls"), front=MODES),
    "thought in calls without content": chat(
        thought("<t>", "</t>", when="message.tool_calls and message.content is none"), front=MODES
    ),
    "the call is the end": chat(calls("", ""), front=MODES),
    "thought in calls and answers": chat(calls("<t>", "</t>", thought("<u>", "</u>")), front=MODES),
    "calls without capability": chat(thought("<t>", "</t>", when="message.content is none"), front=MODES),
    "tools in the history only": chat(thought("<t>", "</t>", when="tools and message.reasoning_content"), front=MODES),
}
SOURCES = {
    "split": chat(front=MODES, remark=SPLIT),
    "split, other quotes": chat(front=MODES, remark=SPLIT.replace("'", '"')),
    "split, names reasoning_content": chat(front=MODES, remark=f"{SPLIT} reasoning_content"),
    "split, special token": chat(front=MODES, remark=f"{SPLIT} <SPECIAL_12>"),
    "split, start in the prompt": chat(prompt=f"<think>{NL}", remark=SPLIT),
    "split, start while thinking": chat(prompt=switch("<t>", ""), remark=SPLIT),
    "split, no tags but thinks": chat(thought("so ", "</t>", inside=HIDDEN, when=ASSISTANT), remark=SPLIT, front=MODES),
    "Granite": chat(front=MODES, remark=GRANITE),
    "Granite, thought in the history": chat(thought("<t>", "</t>"), remark=GRANITE),
    "Granite, one letter less": chat(front=MODES, remark=GRANITE[:-1]),
    "Nemotron": chat(prompt=switch(f"<think>{NL}", "<think></think>"), remark=NEMOTRON),
    "Nemotron, one token less": chat(front=MODES, remark=NEMOTRON.replace("<TOOL_RESPONSE>", "")),
    "Nemotron and Granite": chat(front=MODES, remark=f"{NEMOTRON} {GRANITE}"),
    "Laguna": chat(thought(f"<t>{NL}", f"{NL}</t>{NL}"), f"{NL}<t>", remark="laguna_glm_thinking"),
    "Laguna without thoughts": chat(front=MODES, remark="laguna_glm_thinking"),
}
TEMPLATES: Mapping[str, str] = {**HISTORY, **PROMPTS, **CALLS, **SOURCES}


def load() -> Mapping[str, Any]:
    """For each template the server's answer to each request, or its refusal to start."""
    return dict(json.loads(PATH.read_text(encoding="utf-8")))


def regenerated() -> Mapping[Path, str]:
    """The case file as the server has it now."""
    answers = oracle.ask_all(Question(source.encode(), tuple(REQUESTS.values())) for source in TEMPLATES.values())
    entries = {name: _entry(answer) for name, answer in zip(TEMPLATES, answers, strict=True)}
    return {PATH: json.dumps(entries, indent=1, ensure_ascii=False) + "\n"}


def _entry(answer: Answer) -> Mapping[str, object]:
    if answer.reason is not None:
        raise ValueError(f"the server refused or died: {answer.reason}")
    return {name: reply.prompt for name, reply in zip(REQUESTS, answer.replies, strict=True)}
