"""What real llama.cpp makes of request bodies and of JSON texts: `tests/cases/requests.jsonl`, `json_texts.jsonl`.

One case a line. A request has a `name` and either a `body` (JSON) or a `text` (the body as it is sent); its `answer`
holds the HTTP `status` and either the `error` text, or what `TEMPLATE` printed, and `warnings` of the log. A JSON text
has either the `error` or the text that it is `dumped` to. Bytes that are not UTF-8 are lone surrogates (Python's
`surrogateescape`). `python -m tests.regenerate` asks the engine for all answers.

What is printed: `messages`, `tools` if there are any, and the variables of `VARIABLES` that are defined. Numbers lose
digits on the way (the engine prints doubles with six), so the cases use those that do not. `continued`: more followed,
since the last message was taken off and continued.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

FOLDER = Path(__file__).parent / "cases"
REQUESTS = FOLDER / "requests.jsonl"
JSON_TEXTS = FOLDER / "json_texts.jsonl"

VARIABLES = (
    *("add_generation_prompt", "enable_thinking", "reasoning_effort", "reasoning_strength", "preserve_reasoning"),
    *("response_format", "k"),
)
"""Variables that are printed where they are defined."""

# The comment has the server take its handler for DeepSeek V4, the only one that hands a JSON schema on; it leaves
# messages alone. The part before the JSON satisfies the capability probes: typed content, tools, calls whose arguments
# stay strings.
TEMPLATE = (
    "{#- dsml_token DSML tool_calls -#}"
    "{%- for message in messages %}{% if message.content is not string %}"
    "{% for part in message.content %}{% set text = part.text %}{% endfor %}{% endif %}{% endfor -%}"
    "{%- if messages and messages[0].content == 'User message' -%}"
    "{{ messages[0].content }}{{ tools[0].function.name if tools }}"
    "{% for call in messages[1].tool_calls if messages[1] %}{{ call.function.name }}{% endfor %}"
    "{%- else -%}"
    '{"messages": {{ messages | tojson }}{% if tools %}, "tools": {{ tools | tojson }}{% endif %}'
    + "".join(f'{{% if {name} is defined %}}, "{name}": {{{{ {name} | tojson }}}}{{% endif %}}' for name in VARIABLES)
    + "}{%- endif -%}"
)

_PARSED = "'messages' is required"
_DUMPED = "Failed to parse tools: Expected 'tools' to be an array, got "
_WARNING = re.compile(r"^\S+ W (Wrong type supplied .*)$")
_MARK = "end of case "


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server said to one body: the HTTP status, its JSON, and the warnings in its log."""

    status: int
    content: Any
    warnings: tuple[str, ...] = ()

    @property
    def error(self) -> str:
        """The error text; empty where there is none."""
        return str(self.content["error"]["message"]) if "error" in self.content else ""


def load(path: Path) -> list[dict[str, Any]]:
    """The cases of one file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def as_bytes(text: str) -> bytes:
    """The bytes that a text of a case stands for."""
    return text.encode("utf-8", "surrogateescape")


def regenerated() -> dict[Path, str]:
    """The texts of both files with every answer as the engine gives it now. Raises ValueError on a name used twice."""
    requests, texts = load(REQUESTS), load(JSON_TEXTS)
    if len({case["name"] for case in requests}) < len(requests):
        raise ValueError(f"{REQUESTS.name}: a case name stands twice")
    sent = [as_bytes(case["text"]) if "text" in case else json.dumps(case["body"]).encode() for case in requests]
    replies = ask(sent)
    for case, reply in zip(requests, replies, strict=True):
        case["answer"] = _answer(reply)
    answered = [{"text": case["text"], **answer} for case, answer in zip(texts, _json_answers(texts), strict=True)]
    return {REQUESTS: _lines(requests), JSON_TEXTS: _lines(answered)}


def _lines(cases: Sequence[dict[str, Any]]) -> str:
    # Only ASCII: lone surrogates cannot be written otherwise, and nothing else can be mistaken.
    return "".join([json.dumps(case) + "\n" for case in cases])


def _answer(reply: Reply) -> dict[str, Any]:
    answer: dict[str, Any] = {"status": reply.status}
    if reply.error:
        answer["error"] = reply.error
    else:
        prompt = reply.content["prompt"]
        printed, end = json.JSONDecoder().raw_decode(prompt)
        answer |= printed
        if end < len(prompt):
            answer["continued"] = True
    return {**answer, "warnings": list(reply.warnings)} if reply.warnings else answer


def _json_answers(cases: Sequence[dict[str, Any]]) -> Iterator[dict[str, str]]:
    """For each text: whether it is JSON, asked with the text as a whole body; and what it is dumped to, by sending it
    where the server quotes what it was sent."""
    texts = [as_bytes(case["text"]) for case in cases]
    # What stands before and behind the JSON proper cannot stand in the middle of a body.
    inner = [text.removeprefix(b"\xef\xbb\xbf").partition(b"\0")[0] for text in texts]
    quoted = [b'{"messages":[],"tools":{"":%b}}' % text for text in inner]
    for parsed, dumped in zip(ask(texts), ask(quoted), strict=True):
        if parsed.error != _PARSED:
            yield {"error": parsed.error}
        else:
            compact, _, _ = dumped.error.removeprefix(_DUMPED).partition("; tools = {\n")
            yield {"dumped": compact.removeprefix('{"":').removesuffix("}")}


def ask(bodies: Sequence[bytes]) -> list[Reply]:
    """Put all bodies to one real server that runs `TEMPLATE`."""
    with tempfile.TemporaryDirectory(prefix="capscan-requests-") as folder:
        template, log = Path(folder, "template.jinja"), Path(folder, "log")
        template.write_text(TEMPLATE, encoding="utf-8")
        with log.open("wb") as out:
            replies = _ask(template, bodies, out)
        warnings = _warnings(log.read_text(encoding="utf-8", errors="replace"), len(bodies))
    return [Reply(reply.status, reply.content, told) for reply, told in zip(replies, warnings, strict=True)]


def _ask(template: Path, bodies: Sequence[bytes], log: IO[bytes]) -> list[Reply]:
    command = [sys.executable, "-m", "tests.engine_server", str(template)]
    root = Path(__file__).resolve().parent.parent
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, cwd=root) as process:
        if process.stdin is None or process.stdout is None:
            raise AssertionError("pipes were asked for")
        address = urlsplit(process.stdout.readline().decode().strip())
        if not address.hostname:
            raise ValueError("the server did not start")
        connection = HTTPConnection(address.hostname, address.port, timeout=60)
        replies = []
        for number, body in enumerate(bodies):
            replies.append(_post(connection, body))
            # Refused with this word, which shows in the log what belongs to which body.
            _post(connection, json.dumps({"messages": [], "tool_choice": f"{_MARK}{number}"}).encode())
        connection.close()
        # The server ends with its input, and only then is its log complete.
        process.stdin.close()
        process.wait(60)
    return replies


def _post(connection: HTTPConnection, body: bytes) -> Reply:
    connection.request("POST", "/apply-template", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    return Reply(response.status, json.load(response))


def _warnings(log: str, count: int) -> list[tuple[str, ...]]:
    found: list[list[str]] = [[] for _ in range(count)]
    number = 0
    for line in log.splitlines():
        if f'"Invalid tool_choice: {_MARK}{number}"' in line:
            number += 1
        elif (warning := _WARNING.match(line)) and number < count:
            found[number].append(warning[1])
    if number != count:
        raise ValueError(f"the log tells only {number} of {count} bodies apart")
    return [tuple(warnings) for warnings in found]
