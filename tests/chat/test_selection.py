"""Which template a server uses, its patches, and its handler (`chat.md` sections 1, 2 and 5)."""

from __future__ import annotations

import pytest

from scanner.chat.handlers import AUTOPARSER, HANDLERS, detect, is_outdated_gemma4
from scanner.chat.patches import CUT_AT_NUL, PATCHES, patch
from scanner.chat.selection import CHATML, select
from scanner.dialect import Template
from scanner.pipeline import analyse_template
from scanner.results import ChatTemplate, Outcome


def template(variant: str, source: bytes = b"x") -> ChatTemplate:
    return ChatTemplate(variant, source, "test")


def test_a_default_alone_is_reported() -> None:
    chosen = select([template("default")])
    assert (chosen.reported.variant, chosen.tool_use, chosen.fallback) == ("default", None, None)


def test_tool_use_is_reported_while_the_default_renders_plain_requests() -> None:
    chosen = select([template("default"), template("tool_use"), template("rag")])
    assert (chosen.default.variant, chosen.reported.variant, chosen.ignored) == ("default", "tool_use", ("rag",))


@pytest.mark.parametrize("source", [b"", b"chatml"])
def test_a_default_that_is_none_gives_way_to_tool_use(source: bytes) -> None:
    chosen = select([template("default", source), template("tool_use", b"t")])
    assert chosen.default.source == b"t"
    assert chosen.fallback is not None


def test_a_tool_use_template_that_does_not_parse_is_ignored() -> None:
    chosen = select([template("default"), template("tool_use")], unparseable={"tool_use"})
    assert (chosen.reported.variant, chosen.tool_use) == ("default", None)


@pytest.mark.parametrize("source", [b"", b"chatml", b"\0{{ messages }}"])
def test_a_text_that_counts_as_no_template_has_no_flags(source: bytes) -> None:
    result = analyse_template(source)
    assert (result.outcome, result.capabilities) == (Outcome.NO_TEMPLATE, None)
    assert result.reason is not None
    assert result.reason.endswith("llama.cpp uses ChatML instead")


def test_nothing_at_all_is_chatml() -> None:
    chosen = select([])
    assert chosen.default.source == CHATML
    assert chosen.fallback == "no default template: llama.cpp uses ChatML"


def test_chatml_prints_what_the_built_in_one_does_and_claims_two_flags() -> None:
    conversation = [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}]
    output = Template(CHATML).run({"messages": conversation, "add_generation_prompt": True}).output
    assert output == b"<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n"
    capabilities = analyse_template(CHATML).capabilities
    assert capabilities is not None
    claimed = {name for name, holds in capabilities.as_llama_cpp().items() if holds}
    assert claimed == {"supports_string_content", "supports_system_role"}


def test_one_family_gets_a_name_for_a_template() -> None:
    assert select([], tokenizer_pre="tekken", block_count=40).default.source == b"mistral-v7-tekken"
    assert select([], tokenizer_pre="tekken", block_count=39).default.source == CHATML


@pytest.mark.parametrize("rule", PATCHES, ids=[rule.name for rule in PATCHES])
def test_a_patched_line_never_holds(rule: object) -> None:
    (known,) = [known for known in PATCHES if known is rule]
    source = b"".join([b"a\n", known.line, b"x{%- endif %}", *known.signs])
    done = patch(source)
    assert (done.names, known.line in done.source) == ((known.name,), False)
    assert b"{%- if false %}" in done.source


def test_a_patch_needs_both_signs_and_the_line() -> None:
    for rule in PATCHES:
        assert patch(rule.signs[0] + rule.signs[1]).names == ()
        assert patch(rule.line.replace(rule.signs[1], b"")).names == ()


def test_text_behind_a_nul_is_lost() -> None:
    done = patch(b"a\0b")
    assert (done.source, done.names) == (b"a", (CUT_AT_NUL,))


def test_a_patched_template_keeps_the_places_of_its_file() -> None:
    rule = PATCHES[1]
    body = b"[TOOL_CALLS]{%- for message in messages %}\n" + rule.line + b"{%- endif %}{{ message['content'] }}"
    result = analyse_template(body + b"{%- endfor %}")
    assert result.patches == (rule.name,)
    assert {read.line for run in result.probes for read in run.reads if read.path.endswith("].content")} == {2}


@pytest.mark.parametrize("handler", HANDLERS, ids=[handler.name for handler in HANDLERS])
def test_each_handler_is_found_by_its_signs(handler: object) -> None:
    (known,) = [known for known in HANDLERS if known is handler]
    source = b" ".join([*known.present, *known.either[:1]])
    assert detect(source) == known.name
    assert detect(b" ".join(known.present[:-1])) != known.name
    for sign in known.absent:
        assert detect(source + sign) != known.name


def test_anything_else_is_for_the_autoparser() -> None:
    assert detect(b"{{ messages }}") == AUTOPARSER


def test_a_gemma4_template_is_outdated_without_its_new_comment() -> None:
    sign = b"'<|tool_call>call:'"
    assert is_outdated_gemma4(sign)
    assert not is_outdated_gemma4(sign + b"{#- OpenAI Chat Completions: #}")
    assert not is_outdated_gemma4(b"x")
