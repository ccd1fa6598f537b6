"""The same questions put to real llama.cpp, by way of the `llama-server` inside the wheel `xllamacpp` (extra `oracle`).

The engine runs only in child processes, one server each: a template can take the process down, and a server leaves
global state behind. The child is this module itself, run with `python -m scanner.oracle MODEL`.

How an error text is got out of the engine. A server renders two conversations of its own before it listens, and
refuses to start when one of them fails, so a snippet that always raises never answers a request. The refusal is as good
as an answer: the log on standard error holds the whole message, with node, line and column. A snippet is therefore put
to the engine exactly as it is; wrapping it in `{% if messages[0].content == 'GO' %}` (the start-up conversations then
pass, and the error comes back as an HTTP error) would work too, but moves offsets and hides what the lexer does at the
first and the last byte.

One question takes about 0.15 s, two at once about 0.1 s each on two cores.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scanner.errors import CapscanError

_KEY = "tokenizer.chat_template"
_BOS, _EOS = 1, 2
_BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
_TOKENS = ["<unk>", "<s>", "</s>", *_BYTES, *(f"filler{i}" for i in range(41))]
# llama.cpp's token types: 1 normal, 2 unknown, 3 control, 6 byte.
_TOKEN_TYPES = [2, 3, 3, *[6] * len(_BYTES), *[1] * 41]
_WIDTH, _INNER, _HEADS, _CONTEXT = 32, 64, 2, 256
_TENSORS: Mapping[str, tuple[int, ...]] = {
    "token_embd.weight": (len(_TOKENS), _WIDTH),
    "output_norm.weight": (_WIDTH,),
    "output.weight": (len(_TOKENS), _WIDTH),
    "blk.0.attn_norm.weight": (_WIDTH,),
    "blk.0.attn_q.weight": (_WIDTH, _WIDTH),
    "blk.0.attn_k.weight": (_WIDTH, _WIDTH),
    "blk.0.attn_v.weight": (_WIDTH, _WIDTH),
    "blk.0.attn_output.weight": (_WIDTH, _WIDTH),
    "blk.0.ffn_norm.weight": (_WIDTH,),
    "blk.0.ffn_gate.weight": (_INNER, _WIDTH),
    "blk.0.ffn_up.weight": (_INNER, _WIDTH),
    "blk.0.ffn_down.weight": (_WIDTH, _INNER),
}


class OracleError(CapscanError):
    """The engine cannot be asked at all (xllamacpp is not installed, or it does not load)."""

    slug = "oracle"


@dataclass(frozen=True, slots=True)
class Question:
    """What to put to one server.

    `template` is the default template, `named` holds others as (name, template), of which llama.cpp uses `tool_use`
    only. `requests` are bodies of `POST /apply-template`, put to this server in order.
    """

    template: bytes
    requests: tuple[Mapping[str, object], ...] = ()
    named: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """What one request got: the `prompt` (bytes that are not UTF-8 show as U+FFFD: the server's own doing), or the
    engine's whole `error` text, which `parse_error` takes apart."""

    prompt: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the engine said.

    `started`: the server listens. `capabilities` is llama.cpp's own map (`supports_…`), None when it did not start.
    `replies` are those that came, in the order of the requests; fewer than asked when the server died on the way.
    `reason` is None when all went well; else why the server refused to start, in the engine's words, or `crashed: …`
    or `timed out: …` in ours. `warnings` are the warnings and errors of a log that did not end in a refusal.
    `parsed` is false when the reason is that the default template does not lex or parse.
    """

    started: bool
    capabilities: Mapping[str, bool] | None
    replies: tuple[Reply, ...]
    reason: str | None
    warnings: tuple[str, ...]
    parsed: bool = True


@dataclass(frozen=True, slots=True)
class EngineError:
    """An error text of the engine, taken apart.

    `kind`: `lexer`, `parser`, `wrapped` (a run-time error that names its `node`) or `bare` (anything else: what
    llama.cpp does not wrap, and what its server says itself). `message` is the text without excerpt and place. The
    place is None where the text has none: `offset` in bytes of the source as lexed (`as_lexed`), `line` and `column`
    (in bytes) from 1.
    """

    kind: str
    message: str
    node: str | None = None
    offset: int | None = None
    line: int | None = None
    column: int | None = None


def available() -> str | None:
    """Why the engine cannot be asked, in one line that says what to do about it; None when it can."""
    if importlib.util.find_spec("xllamacpp") is None:
        return "xllamacpp is not installed: pip install 'capscan[oracle]'"
    return None


def ask(question: Question, *, timeout: float = 60) -> Answer:
    """Put one question to a server of its own and wait for the answer, at most `timeout` seconds.

    A refusal, a crash and a time-out are answers. Raises OracleError when there is no engine to ask.
    """
    if reason := available():
        raise OracleError(reason)
    with tempfile.TemporaryDirectory(prefix="capscan-oracle-") as folder:
        model = Path(folder, "model.gguf")
        write_model(model, question)
        return _ask_child(model, question.requests, timeout)


def ask_all(questions: Iterable[Question], *, workers: int = 2, timeout: float = 60) -> Iterator[Answer]:
    """The answers to all questions, in their order; at most `workers` servers run at once.

    `questions` is read only a few steps ahead, so it may be long. `timeout` is in seconds, for each question.
    """
    with ThreadPoolExecutor(workers) as threads:
        waiting: deque[Future[Answer]] = deque()
        for question in questions:
            waiting.append(threads.submit(ask, question, timeout=timeout))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def parse_error(text: str, source: bytes) -> EngineError:
    """Take the text of `Reply.error` or `Answer.reason` apart; `source` is the template it was said of."""
    text = text.removeprefix(_NO_PARSER)
    lexed = as_lexed(source)
    if wrapped := _WRAPPED.search(text):
        line, column = int(wrapped["line"]), int(wrapped["column"])
        before = lexed.split(b"\n")[: line - 1]
        offset = sum(len(earlier) + 1 for earlier in before) + column - 1
        return EngineError("wrapped", wrapped["message"], wrapped["node"], offset, line, column)
    kind, colon, message = text.partition(": ")
    if not colon or kind not in ("lexer", "parser"):
        return EngineError("bare", text)
    excerpt = _EXCERPT.search(message)
    if not excerpt:
        return EngineError(kind, message)
    place = _excerpt_offset(excerpt["text"], len(excerpt["blanks"]) - len("..."), lexed)
    return EngineError(kind, message[: excerpt.start()], None, *place)


def _excerpt_offset(excerpt: str, caret: int, lexed: bytes) -> tuple[int, int, int] | tuple[None, None, None]:
    """(offset, line, column) of a caret under an excerpt, which shows line ends as `↵` and at most 40 bytes before."""
    begin = lexed.replace(b"\n", b"\0").find(excerpt.replace("↵", "\0").encode())
    if begin < 0:
        return None, None, None
    offset = begin + caret
    before = lexed[:offset]
    return offset, before.count(b"\n") + 1, offset - before.rfind(b"\n")


def as_lexed(source: bytes) -> bytes:
    """`source` as llama.cpp's lexer counts it: line ends become `\\n`, and one byte at the end goes if it was `\\n`."""
    unified = source.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return unified[:-1] if source.endswith(b"\n") else unified


# --- the parent's side -----------------------------------------------------------------------------------------------

_NO_PARSER = "Unable to generate parser for this template. Automatic parser generation failed: "
_REFUSED = "init: chat template parsing error: "
_UNPARSED = "error: "
_WRAPPED = re.compile(
    r"^-+\nWhile executing (?P<node>\w+) at line (?P<line>\d+), column (?P<column>\d+) in source:\n"
    r".*\n *\^\nError: (?P<message>(?s:.*))",
    re.MULTILINE,
)
_EXCERPT = re.compile(r"\n\.\.\.(?P<text>.*)\.\.\.\n(?P<blanks> *)\^$")
_LOG_LINE = re.compile(r"^\d+\.\d\d\.\d{3}\.\d{3} (?P<level>[A-Z]) +(?P<where>\S.*?): (?P<text>.*)$")
# Said at every start whatever the template, and what the replies hold already.
_NOISE = ("security: no API key is set", "got exception: ")


@functools.cache
def _tensors() -> Mapping[str, Any]:
    import numpy as np

    numbers = np.random.default_rng(0)
    return {name: numbers.standard_normal(shape).astype(np.float32) for name, shape in _TENSORS.items()}


def write_model(path: Path, question: Question) -> None:
    """Write a model of about 130 kB that holds the question's templates."""
    from gguf import GGUFValueType, GGUFWriter

    writer = GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_context_length(_CONTEXT)
    writer.add_embedding_length(_WIDTH)
    writer.add_feed_forward_length(_INNER)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(_TOKENS)
    writer.add_token_scores([0.0] * len(_TOKENS))
    writer.add_token_types(_TOKEN_TYPES)
    writer.add_bos_token_id(_BOS)
    writer.add_eos_token_id(_EOS)
    # `add_chat_template` leaves an empty template out and takes text only; a file can hold any bytes.
    writer.add_key_value(_KEY, question.template, GGUFValueType.STRING)
    for name, template in question.named:
        writer.add_key_value(f"{_KEY}.{name}", template, GGUFValueType.STRING)
    for name, tensor in _tensors().items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _ask_child(model: Path, requests: tuple[Mapping[str, object], ...], timeout: float) -> Answer:
    command = [sys.executable, "-m", "scanner.oracle", str(model)]
    child = subprocess.Popen(  # noqa: S603 - our own interpreter and module
        command,
        # Where `-m` finds this very package, installed or not.
        cwd=Path(__file__).resolve().parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with child:
        try:
            out, log = child.communicate(json.dumps(list(requests)).encode(), timeout)
        except subprocess.TimeoutExpired:
            child.kill()
            out, log = child.communicate()
            return read_answer(out, log, f"timed out: no answer after {timeout:g} s")
    return read_answer(out, log, why_it_died(child.returncode))


def why_it_died(code: int) -> str | None:
    """What an exit code says about the engine; None for an orderly end."""
    if code == 0:
        return None
    return f"crashed: {signal.Signals(-code).name}" if code < 0 else f"crashed: exit code {code}"


def read_answer(out: bytes, log: bytes, death: str | None) -> Answer:
    """Put the lines of the child (`capabilities`, a reply each, `end`) and its log together."""
    # A killed child may leave half a line behind.
    lines = [json.loads(line) for line in out.split(b"\n")[:-1]]
    if lines and "unavailable" in lines[0]:
        raise OracleError(lines[0]["unavailable"])
    if lines and "end" in lines[-1]:
        # All was said; how the process went away then says nothing about the template.
        lines, death = lines[:-1], None
    entries = list(_log_entries(log.decode(errors="replace")))
    if not lines:
        unparsed = _reason(entries, _UNPARSED)
        return Answer(False, None, (), death or unparsed or _refusal(entries), (), parsed=unparsed is None)
    replies = tuple(Reply(line.get("prompt"), line.get("error")) for line in lines[1:])
    return Answer(True, lines[0]["capabilities"], replies, death, _warnings(entries))


def _log_entries(log: str) -> Iterator[tuple[str, str]]:
    """(level, text) of each entry of a log; a text may run over several lines."""
    level, lines = "", list[str]()
    for line in log.split("\n"):
        start = _LOG_LINE.match(line)
        if not start:
            lines.append(line)
            continue
        yield level, "\n".join(lines)
        level, lines = start["level"], [start["text"]]
    yield level, "\n".join(lines)


def _reason(entries: list[tuple[str, str]], prefix: str) -> str | None:
    found = (text.removeprefix(prefix) for level, text in entries if level == "E" and text.startswith(prefix))
    return next(found, None)


def _refusal(entries: list[tuple[str, str]]) -> str:
    """Why a server whose template parses did not start, as far as its log says."""
    everything = "\n".join(text for level, text in entries if level == "E")
    return _reason(entries, _REFUSED) or everything or "the server did not start and its log does not say why"


def _warnings(entries: list[tuple[str, str]]) -> tuple[str, ...]:
    texts = [text.strip() for level, text in entries if level in ("W", "E") and not text.startswith(_NOISE)]
    return tuple(dict.fromkeys(texts))


# --- the child's side ------------------------------------------------------------------------------------------------


def serve(model: str) -> None:
    """Start a server on `model`, put the requests on standard input to it, print one JSON line for each answer."""
    # The engine may print; its lines must not get among the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    requests = json.load(sys.stdin)

    def say(line: Mapping[str, object]) -> None:
        print(json.dumps(line), file=answers, flush=True)

    try:
        import xllamacpp
    except ImportError as error:
        say({"unavailable": f"xllamacpp does not load: {error}"})
        return
    # From here on the process ends the slow way: the log is written by a thread, and `os._exit` would cut it off.
    try:
        server = xllamacpp.Server(server_parameters(xllamacpp, model))
    except RuntimeError:
        # The exception does not say why, the log does.
        say({"end": True})
        return
    say({"capabilities": _fetch(f"{server.listening_address}/props")["chat_template_caps"]})
    for request in requests:
        say(_fetch(f"{server.listening_address}/apply-template", request))
    say({"end": True})


def server_parameters(xllamacpp: Any, model: str) -> Any:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = model
    parameters.n_ctx = _CONTEXT
    parameters.n_parallel = 1
    parameters.warmup = False
    parameters.use_jinja = True
    parameters.port = 0
    return parameters


def _fetch(url: str, body: object = None) -> dict[str, Any]:
    """GET, or POST with a body. An HTTP error becomes `{"error": TEXT}`."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})  # noqa: S310 - loopback, ours
    try:
        with urllib.request.urlopen(request) as response:  # noqa: S310 - as above
            return dict(json.load(response))
    except urllib.error.HTTPError as error:
        return {"error": json.load(error)["error"]["message"]}


if __name__ == "__main__":
    serve(sys.argv[1])
