"""Small templates, and what they are found to do."""

from __future__ import annotations

from functools import lru_cache

from scanner.chat.server import USUAL, Vocabulary
from scanner.dialect import Limits
from scanner.probe.behaviours import Requests, behave
from scanner.rendering import bare_template
from scanner.results import Behaviour
from scanner.serving import Serving, serve

NOW = 1_790_000_000.0

CHAT = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
"""Prints all messages as they are, and no calls."""
KNOWN_ONLY = (
    "{% for message in messages %}{% if message.role in ['system', 'user', 'assistant'] %}"
    "<|{{ message.role }}|>{{ message.content }}<|end|>{% endif %}{% endfor %}"
)
CALLS = (
    "{{ tools | tojson if tools }}{% for message in messages %}<|{{ message.role }}|>{{ message.content }}"
    "{% for call in message.tool_calls or [] %}[CALL]{{ call.function.name }}%s{% endfor %}<|end|>{% endfor %}"
)
"""Prints calls; `%s` stands for their arguments."""


def raising(condition: str, message: str = "no, thanks") -> str:
    """A template that raises on a line of its own, the second, where a condition on `message` holds."""
    check = f"{{% if {condition} %}}{{{{ raise_exception('{message}') }}}}{{% endif %}}"
    return f"{{% for message in messages %}}\n{check}{{% endfor %}}{CHAT}"


def serving_of(template: str, vocabulary: Vocabulary = USUAL) -> Serving:
    """A server with this default template."""
    return serve(bare_template(template.encode()), vocabulary, now=NOW)


@lru_cache(maxsize=128)
def behaviours(template: str, vocabulary: Vocabulary = USUAL, limits: Limits | None = None) -> dict[str, Behaviour]:
    """All behaviours of a template, by key; `limits` are those of the requests."""
    serving = serving_of(template, vocabulary)
    found = behave(Requests(serving.server, NOW, limits), serving.start, ())
    return {behaviour.key: behaviour for behaviour in found}
