"""Our flags held against the real llama.cpp: the in-process engine (extra `oracle`), or a running server."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import tee

from scanner import oracle
from scanner.chat.patches import patch
from scanner.chat.selection import select_of_file
from scanner.console import visible
from scanner.errors import CapscanError
from scanner.judge.verdicts import DECIDING_PROBES, yes_or_no
from scanner.pipeline import analyse_template
from scanner.probe.profiles import CURRENT, PROFILES
from scanner.results import Capabilities, FileResult, FlagDifference, Outcome, TemplateResult, Verdict, Verification

HARMLESS = b"{% for message in messages %}{{ message.content }}{% endfor %}"
"""A default template that every server starts with, beside which another is asked about as the tool_use template."""

TOOL_USE_REFUSED = "failed to parse tool use chat template (ignoring it): "
"""How the engine's log begins the reason why it ignores a tool_use template."""

PROPS_BYTES = 64 * 1024 * 1024
"""The largest answer of a server that is read."""


class ServerError(CapscanError):
    """A server cannot be asked, or is no llama-server."""

    slug = "server"


def verify_templates(
    templates: Iterable[tuple[str, bytes]], *, workers: int = 2, timeout: float = 60.0
) -> Iterator[Verification]:
    """Each template (SHA-256, bytes) put to an engine of its own. Raises OracleError where there is no engine."""
    ours, theirs = tee(templates)
    answers = oracle.ask_all((question(source) for _, source in theirs), workers=workers, timeout=timeout)
    for (sha256, source), answer in zip(ours, answers, strict=True):
        yield compare(sha256, analyse_template(source), answer)


def question(source: bytes) -> oracle.Question:
    """How a template's flags are asked for.

    As `tool_use` beside a harmless default: a default that fails the server's own start-up conversations would keep it
    from starting, although its flags can be computed (`chat.md` sections 1 and 6). Patches are for defaults only, so
    they are applied beforehand.
    """
    return oracle.Question(HARMLESS, named=(("tool_use", patch(source).source),))


def compare(sha256: str, ours: TemplateResult, answer: oracle.Answer) -> Verification:
    """What the engine's answer says of our result."""
    refusal = next((text for text in answer.warnings if text.startswith(TOOL_USE_REFUSED)), None)
    if answer.capabilities is None:
        return _not_comparable(sha256, f"the engine gave no flags: {_one_line(answer.reason or '')}")
    if ours.outcome is Outcome.LIMIT_EXCEEDED:
        return _not_comparable(sha256, ours.reason or "limit exceeded")
    if refusal is not None:
        reason = _one_line(refusal.removeprefix(TOOL_USE_REFUSED))
        parses = ours.capabilities is not None
        verdict = Verdict.DIFFERENT if parses else Verdict.EQUAL
        return Verification(sha256, CURRENT.name, verdict, reason=f"llama.cpp cannot parse it: {reason}")
    if ours.capabilities is None:
        reason = f"llama.cpp parses it, Capscan does not: {ours.reason}"
        return Verification(sha256, CURRENT.name, Verdict.DIFFERENT, reason=reason)
    differences = flag_differences(ours.capabilities, answer.capabilities)
    return Verification(
        sha256, CURRENT.name, Verdict.DIFFERENT if differences else Verdict.EQUAL, differences=differences
    )


def flag_differences(ours: Capabilities, theirs: Mapping[str, bool]) -> tuple[FlagDifference, ...]:
    """The flags that differ, with the probe that decides each; only those that both know."""
    claims = ours.as_llama_cpp()
    return tuple(
        FlagDifference(name.removeprefix("supports_"), claims[name], engine, _probe_of(name))
        for name, engine in sorted(theirs.items())
        if name in claims and claims[name] != engine
    )


def _probe_of(name: str) -> str:
    return DECIDING_PROBES[name.removeprefix("supports_")][0]


def _not_comparable(sha256: str, reason: str) -> Verification:
    return Verification(sha256, CURRENT.name, Verdict.NOT_COMPARABLE, reason=reason)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200]


# -- a running server --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Server:
    """What a running llama-server says of itself under `/props`. Templates are its own text: patched, if it patches."""

    url: str
    build: str
    template: bytes
    tool_use: bytes | None
    capabilities: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class ServerVerdict:
    """A server held against our verdict on the very text it runs.

    `fitting` are the profiles whose flags for that text are the server's; `differences` those of the profile asked for.
    """

    server: Server
    result: TemplateResult
    fitting: tuple[str, ...]
    differences: tuple[FlagDifference, ...]


def ask_server(url: str, *, api_key: str | None = None, timeout: float = 10.0) -> Server:
    """A server's `/props`. Raises ServerError in one line for whatever goes wrong."""
    address = url.rstrip("/") + "/props"
    if not address.startswith(("http://", "https://")):
        raise ServerError(f"{url}: a server's address starts with http:// or https://")
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    request = urllib.request.Request(address, headers=headers)  # noqa: S310 - http and https only, see above
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:  # noqa: S310 - as above
            body = response.read(PROPS_BYTES)
    except urllib.error.HTTPError as error:
        hint = " (is --api-key right?)" if error.code in (401, 403) else ""
        raise ServerError(f"{address}: HTTP {error.code} {error.reason}{hint}") from error
    except TimeoutError as error:
        raise ServerError(f"{address}: no answer within {timeout:g} s") from error
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise ServerError(f"{address}: {getattr(error, 'reason', None) or error}") from error
    return _server(url, address, body)


def _server(url: str, address: str, body: bytes) -> Server:
    try:
        props = json.loads(body)
    except ValueError as error:
        raise ServerError(f"{address}: the answer is no JSON: this is no llama-server") from error
    if not isinstance(props, dict) or not isinstance(props.get("chat_template"), str):
        raise ServerError(f"{address}: the answer names no chat template: this is no llama-server")
    flags = props.get("chat_template_caps")
    if not isinstance(flags, dict):
        raise ServerError(f"{address}: this llama-server is too old to report chat_template_caps")
    tool_use = props.get("chat_template_tool_use")
    return Server(
        url=url,
        build=str(props.get("build_info", "unknown")),
        template=_bytes(props["chat_template"]),
        tool_use=_bytes(tool_use) if isinstance(tool_use, str) and tool_use else None,
        capabilities={str(name): bool(holds) for name, holds in flags.items()},
    )


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def judge_server(server: Server, profile: str = CURRENT.name) -> ServerVerdict:
    """A server's flags against ours for the template it reports them for."""
    source = server.tool_use or server.template
    results = {name: analyse_template(source, profile=name) for name in PROFILES}
    result = results[profile]
    fitting = tuple(name for name in PROFILES if _same(results[name].capabilities, server.capabilities))
    differences = flag_differences(result.capabilities, server.capabilities) if result.capabilities else ()
    return ServerVerdict(server, result, fitting, differences)


def _same(ours: Capabilities | None, theirs: Mapping[str, bool]) -> bool:
    return ours is not None and ours.as_llama_cpp() == dict(theirs)


def runs(server: Server, source: bytes) -> bool:
    """Whether a server's default template is this one: as patched, and but for line ends, which it may change."""
    return canonical(server.template) == canonical(patch(source).source)


def canonical(text: bytes) -> bytes:
    """A template's text without what a server may change of it: line ends, and one at the end."""
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").removesuffix(b"\n")


@dataclass(frozen=True, slots=True)
class Held:
    """One variant of one model file, and whether a server runs it as its default template."""

    path: str
    variant: str
    runs: bool


def held_by(server: Server, result: FileResult) -> list[Held]:
    """The template that llama.cpp would use of a model file, held against the one the server runs."""
    chosen = select_of_file(result)
    variant = chosen.default.variant if chosen.fallback is None else chosen.fallback
    return [Held(result.file.path, variant, runs(server, chosen.default.source))]


def server_document(verdict: ServerVerdict, held: Sequence[Held]) -> dict[str, object]:
    """A server's verdict as JSON-compatible data."""
    capabilities = verdict.result.capabilities
    return {
        "server": verdict.server.url,
        "build": verdict.server.build,
        "template": {
            "sha256": verdict.result.sha256,
            "bytes": len(verdict.server.tool_use or verdict.server.template),
            "variant": "tool_use" if verdict.server.tool_use else "default",
        },
        "profile": verdict.result.profile,
        "capabilities": dict(sorted(verdict.server.capabilities.items())),
        "expected": None if capabilities is None else capabilities.as_llama_cpp(),
        "differences": [asdict(difference) for difference in verdict.differences],
        "fitting_profiles": list(verdict.fitting),
        "model_files": [asdict(found) for found in held],
    }


def server_lines(verdict: ServerVerdict, held: Sequence[Held], *, asked: bool) -> Iterator[str]:
    """A server's verdict for a person; `asked`: model files were given to compare with."""
    server, result = verdict.server, verdict.result
    source = server.tool_use or server.template
    kind = "tool_use template" if server.tool_use else "template"
    yield f"{visible(server.url)} · build {visible(server.build)} · {kind} of {len(source):,} bytes"
    if result.capabilities is None:
        yield f"  not comparable: {visible(result.reason or str(result.outcome))}"
    elif not verdict.differences:
        yield f"  equal: its flags are those of profile {result.profile} for the template it runs"
    for difference in verdict.differences:
        told, ours = yes_or_no(difference.engine), yes_or_no(difference.ours)
        yield f"  different: {difference.capability} is {told} there, {ours} by profile {result.profile}"
    others = [name for name in verdict.fitting if name != result.profile]
    if verdict.differences and others:
        yield f"  fits profile {', '.join(others)}"
    elif verdict.differences:
        yield "  fits no known profile"
    yield from _held_lines(held, asked=asked)


def _held_lines(held: Sequence[Held], *, asked: bool) -> Iterator[str]:
    running = [found for found in held if found.runs]
    for found in running[:5]:
        yield f"  runs the template of {visible(found.path)} ({visible(found.variant)})"
    if len(running) > 5:
        yield f"  … and of {len(running) - 5:,} more"
    if not running and asked:
        yield f"  runs another template than {', '.join(visible(found.path) for found in held)}: an override?"
    elif not running:
        yield "  runs a template that the database does not know: an override?"
