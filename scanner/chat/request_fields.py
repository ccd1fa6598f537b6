"""The fields of a request beside messages and tools that have a say in the prompt, or in whether there is one
(`chat.md` section 3, server fields). All facts were read off the real engine (`tests/cases/requests.jsonl`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scanner.chat.request_base import SERVER_ERROR, Message, Notes, RequestError, shown, wrong_type
from scanner.chat.request_messages import ASSISTANT

AUTO = "auto"
TOOL_CHOICES = (AUTO, "none", "required")
REASONING_FORMATS = ("none", AUTO, "deepseek", "deepseek-legacy")
CONTINUATIONS = ("content", "reasoning_content")
ANY_OBJECT: Mapping[str, Any] = {"type": "object"}
"""The schema that stands for "any object"; it takes the place of an empty one."""
WITHOUT_EFFECT = (
    "enable_thinking",
    "thinking",
    "reasoning",
    "documents",
    "functions",
    "function_call",
    "chat_template",
)
"""Fields that other servers let shape the prompt, and that llama-server does not look at."""
PROMPT_FIELDS = ("add_generation_prompt", "reasoning_effort", "tool_choice")
"""Fields that have a say in the prompt, or seem to, and give way to a default."""
TYPES: Mapping[str, tuple[type, ...]] = {"boolean": (bool,), "string": (str,), "number": (int, float)}
WRONG_TYPE = "Wrong type supplied for parameter '{}', using default value: {}"


@dataclass(slots=True)
class Fields:
    """The fields of a JSON object, read as llama.cpp does: a value of the wrong type gives way to the default, with a
    warning in its log. Fields have to be read in its order, so that the warnings come in its order. `ignored` are the
    names of the fields that were of the wrong type."""

    given: Mapping[str, Any]
    warnings: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)

    def boolean(self, name: str, default: bool) -> bool:
        return bool(self._read(name, "boolean", default))

    def string(self, name: str, default: str) -> str:
        return str(self._read(name, "string", default))

    def skip_number(self, name: str) -> None:
        """Read a number that matters for nothing here but its warning."""
        self._read(name, "number", 0)

    def _read(self, name: str, kind: str, default: Any) -> Any:
        value = self.given.get(name)
        if value is None:
            return default
        if isinstance(value, TYPES[kind]):
            return value
        self.warnings.append(WRONG_TYPE.format(name, wrong_type(kind, value)))
        self.ignored.append(name)
        return default


def read_schema(fields: Fields, grammar: str) -> Mapping[str, Any] | None:
    """The JSON schema that the answer has to follow, of which one handler tells the template. Raises RequestError."""
    schema = fields.given.get("json_schema")
    if schema is not None and grammar:
        raise RequestError("Cannot use both json_schema and grammar", status=SERVER_ERROR)
    wanted = fields.given.get("response_format")
    if isinstance(wanted, Mapping):
        schema = _schema_of_format(wanted, fields, schema)
    if not isinstance(schema, Mapping):
        return None
    return schema or ANY_OBJECT


def _schema_of_format(wanted: Mapping[str, Any], fields: Fields, schema: Any) -> Any:
    kind = Fields(wanted, fields.warnings).string("type", "")
    if kind == "json_object":
        given = wanted.get("schema", schema)
    elif kind == "json_schema":
        inner = wanted.get("json_schema")
        given = inner.get("schema") if isinstance(inner, Mapping) else None
    elif kind in ("", "text"):
        return schema
    else:
        raise RequestError(f'response_format type must be one of "text" or "json_object", but got: {kind}')
    return ANY_OBJECT if given is None else given


def check_tool_choice(choice: str) -> None:
    """Raises RequestError for a word that is none of the three. An object that names a function is no word, and
    counts as none given."""
    if choice not in TOOL_CHOICES:
        raise RequestError(f"Invalid tool_choice: {choice}")


def read_continuation(fields: Fields, add_generation_prompt: bool, messages: Sequence[Message]) -> str | None:
    """How the last message is continued (see `Request.continues`). Raises RequestError."""
    asked = _asked_continuation(fields.given.get("continue_final_message"))
    last = messages[-1] if messages else None
    if asked:
        if add_generation_prompt:
            raise RequestError("Cannot set both add_generation_prompt and continue_final_message to true.")
    elif last is None or last["role"] != ASSISTANT:
        return None
    elif len(messages) > 1 and messages[-2]["role"] == ASSISTANT:
        text = "Cannot have 2 or more assistant messages at the end of the list."
        raise RequestError(text, len(messages) - 1)
    if last is not None and last["role"] == ASSISTANT and "tool_calls" in last:
        text = "Cannot continue an assistant message that contains tool calls."
        raise RequestError(text, len(messages) - 1)
    return asked or AUTO


def _asked_continuation(asked: Any) -> str | None:
    if asked is None or asked is False:
        return None
    if asked is True:
        return AUTO
    if asked not in CONTINUATIONS:
        text = 'Invalid continue_final_message: expected a boolean, "content" or "reasoning_content"'
        raise RequestError(text)
    return str(asked)


def check_reasoning_format(fields: Fields) -> None:
    """Raises RequestError. This field has no default for a wrong type, nor for null."""
    if "reasoning_format" not in fields.given:
        return
    wanted = fields.given["reasoning_format"]
    if not isinstance(wanted, str):
        raise RequestError(wrong_type("string", wanted))
    if wanted not in REASONING_FORMATS:
        raise RequestError(f"Unknown reasoning format: {wanted}", status=SERVER_ERROR)


def read_kwargs(fields: Fields, effort: str, notes: Notes) -> tuple[dict[str, Any], bool | None]:
    """The template's extra variables, the effort among them, and whether thinking is on (None: the server's default).
    Raises RequestError."""
    given = fields.given.get("chat_template_kwargs")
    kwargs = dict(given) if isinstance(given, Mapping) else {}
    if given is not None and not isinstance(given, Mapping):
        notes.add("chat_template_kwargs is no object: ignored")
    thinking = _effort_into(kwargs, effort, notes)
    wanted = kwargs.get("enable_thinking")
    if isinstance(wanted, str):
        raise RequestError('invalid type for "enable_thinking" (expected boolean, got string)')
    if isinstance(wanted, bool):
        return kwargs, wanted
    if "enable_thinking" in kwargs:
        notes.add("enable_thinking is no boolean: the server's own setting stays, but the template sees this value")
    return kwargs, thinking


def _effort_into(kwargs: dict[str, Any], effort: str, notes: Notes) -> bool | None:
    """Put `reasoning_effort` among the variables. Returns what it says about thinking."""
    if effort == "none":
        gone = " and the one in chat_template_kwargs is dropped" if kwargs.pop("reasoning_effort", None) else ""
        notes.add(f"reasoning_effort none turns thinking off{gone}")
        return False
    if effort:
        over = ", in place of the one in chat_template_kwargs" if "reasoning_effort" in kwargs else ""
        kwargs["reasoning_effort"] = effort
        notes.add(f"reasoning_effort {shown(effort)} became a variable of the template{over}")
    return None


def note_ignored(fields: Fields, notes: Notes) -> None:
    """Note the fields that a client may count on and that have no effect on the prompt."""
    for name in WITHOUT_EFFECT:
        if fields.given.get(name) is not None:
            where = ": it belongs into chat_template_kwargs" if name == "enable_thinking" else ""
            notes.add(f"the field {name} has no effect{where}")
    if fields.given.get("reasoning_effort") == "":
        notes.add("empty reasoning_effort ignored")
    for name in fields.ignored:
        if name in PROMPT_FIELDS:
            notes.add(f"{name} is of the wrong type: ignored")
