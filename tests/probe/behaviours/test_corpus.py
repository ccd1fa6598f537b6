"""What real templates do (skipped where the shared data is absent): the number of templates for each outcome."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from scanner.probe.behaviours import OUTCOMES, examine, reference_requests
from scanner.reference import ReferenceProcess, variables_of_request
from scanner.rendering import bare_template
from scanner.results import Behaviour
from scanner.serving import serve
from tests.probe.behaviours.helpers import NOW
from tests.shared_data import shared_path

DISTRIBUTION: Mapping[str, Mapping[str, int]] = {
    "server_starts": {"yes": 146},
    "late_system": {"rendered": 115, "raises": 16, "dropped": 15},
    "two_systems": {"rendered": 107, "dropped": 23, "raises": 16},
    "system_only": {"rendered": 128, "dropped": 16, "raises": 2},
    "developer": {"rendered": 144, "dropped": 2},
    "no_user": {"rendered": 133, "raises": 13},
    "same_role_twice": {"rendered": 133, "raises": 13},
    "unknown_role": {"dropped": 78, "rendered": 51, "raises": 17},
    "orphan_tool_result": {"rendered": 112, "dropped": 23, "raises": 11},
    "null_content_call": {"same": 116, "raises": 20, "different": 10},
    "thinking_switch": {"ignored": 117, "switches": 29},
    "generation_prompt": {"appended": 115, "ignored": 28, "changes more": 3},
    "history": {"stable": 101, "breaks": 45},
    "white_space": {"kept": 112, "trimmed": 34},
    "parts_join": {"newline": 119, "nothing": 26, "space": 1},
    "arguments": {"json": 53, "nothing": 52, "xml": 23, "raises": 13, "other": 5},
    "clock": {"same": 130, "changes daily": 16},
    "default_system": {"none": 79, "adds": 67},
    "bos": {"once": 74, "none": 72},
    "special_tokens": {"marked as input": 146},
    "prefill": {"text only": 89, "with a thought": 57},
    "kwargs": {"none": 103, "some": 43},
    "reference": {"equal": 114, "only the reference fails": 19, "differs": 13},
}
"""Key → outcome → number of templates, for all keys but `handler`, whose outcomes are names."""

KNOWN: Mapping[tuple[str, str], tuple[str, str]] = {
    ("Qwen3.5-4B", "late_system"): ("raises", "Jinja Exception: System message must be at the beginning."),
    ("deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "late_system"): ("rendered", "moved to the front"),
    ("deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "two_systems"): ("dropped", "lost: system"),
    ("MiniMax-M3", "arguments"): ("xml", "xml · keys lost · non-ASCII kept · string as is · null lost · number 1.5"),
    ("earlier__gemma4-lcp0.3.20", "arguments"): (
        "other",
        "other · keys sorted · non-ASCII kept · string as is · null empty · number 1.5",
    ),
    ("ollama-library__llama3.2-vision-latest", "arguments"): (
        "json",
        "json · keys kept · non-ASCII kept · string double-encoded · null null · number 1.5",
    ),
    ("deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "null_content_call"): (
        "different",
        "absent: call lost · null: call printed · empty: call lost",
    ),
    ("microsoft-Phi-3.5-mini-instruct", "prefill"): ("text only", 'alone "|assistant|>\\n"'),
    ("meta-llama-Llama-3.1-8B-Instruct", "kwargs"): (
        "some",
        "custom_tools (line 2) · tools_in_user_message (line 5) · builtin_tools (line 25)",
    ),
    ("Qwen-Qwen2.5-7B-Instruct", "default_system"): (
        "adds",
        "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
    ),
    ("Reka-Edge", "parts_join"): ("space", '" " · reference " "'),
    ("GLM-4.6", "thinking_switch"): ("switches", "unset equals on"),
}
"""What was judged right by reading the template."""


def test_what_real_templates_do() -> None:
    folder = shared_path("corpus", "templates")
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    known: dict[tuple[str, str], tuple[str, str]] = {}
    with ReferenceProcess() as process:
        for path in sorted(folder.glob("*.jinja")):
            for behaviour in examined(path.read_bytes(), process):
                assert behaviour.outcome in OUTCOMES[behaviour.key], (path.name, behaviour)
                counted[behaviour.key][behaviour.outcome] += 1
                known[path.stem, behaviour.key] = (behaviour.outcome, behaviour.detail)
    assert set(OUTCOMES) - set(DISTRIBUTION) == {"handler"}
    assert {key: dict(counted[key]) for key in DISTRIBUTION} == DISTRIBUTION
    assert {place: known[place] for place in KNOWN} == KNOWN


def examined(source: bytes, process: ReferenceProcess) -> tuple[Behaviour, ...]:
    """All behaviours of a template, the reference included."""
    serving = serve(bare_template(source), now=NOW)
    asked = reference_requests(serving.server, now=NOW)
    tokens = serving.server.vocabulary
    variables = [variables_of_request(body, bos=tokens.bos, eos=tokens.eos) for body in asked.values()]
    references = dict(zip(asked, process.render_all(source, variables, now=NOW), strict=True))
    return examine(serving.server, serving.start, references, now=NOW).behaviours
