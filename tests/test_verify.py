"""`capscan verify`: our flags against the real llama.cpp, in process and as a running server."""

from __future__ import annotations

import http.server
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scanner import oracle
from scanner.cli import run
from scanner.demo.collection import templates
from scanner.oracle import Answer
from scanner.pipeline import analyse_template, not_examined
from scanner.results import Verdict
from scanner.verify import HARMLESS, TOOL_USE_REFUSED, compare
from tests.engine_server import running

REASON = oracle.available()
needs_engine = pytest.mark.skipif(REASON is not None, reason=REASON or "")

PLAIN = b"{% for m in messages %}{{ m.content }}{% endfor %}"


def answer(source: bytes, **changed: bool) -> Answer:
    capabilities = analyse_template(source).capabilities
    assert capabilities is not None
    return Answer(True, {**capabilities.as_llama_cpp(), **changed}, (), None, ())


def test_a_difference_names_the_flag_both_values_and_the_probe() -> None:
    found = compare("0" * 64, analyse_template(PLAIN), answer(PLAIN, supports_system_role=False))
    assert found.verdict is Verdict.DIFFERENT
    (difference,) = found.differences
    assert (difference.capability, difference.ours, difference.engine) == ("system_role", True, False)
    assert difference.probe == "system_role"


def test_what_cannot_be_compared_says_why() -> None:
    crashed = Answer(False, None, (), "crashed: SIGSEGV", ())
    assert compare("0" * 64, analyse_template(PLAIN), crashed).verdict is Verdict.NOT_COMPARABLE
    limited = not_examined("0" * 64, "b11549", "took long")
    found = compare("0" * 64, limited, answer(PLAIN))
    assert (found.verdict, found.reason) == (Verdict.NOT_COMPARABLE, "took long")


def test_a_template_that_one_side_refuses_is_different_and_that_both_refuse_is_equal() -> None:
    refused = Answer(True, dict(answer(HARMLESS).capabilities or {}), (), None, (f"{TOOL_USE_REFUSED}stoll",))
    assert compare("0" * 64, analyse_template(PLAIN), refused).verdict is Verdict.DIFFERENT
    broken = analyse_template(b"{% raw %}")
    assert compare("0" * 64, broken, refused).verdict is Verdict.EQUAL
    assert compare("0" * 64, broken, answer(HARMLESS)).verdict is Verdict.DIFFERENT


@needs_engine
def test_templates_of_paths_and_of_the_database_are_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    for name in ("strict-effort", "no-system", "not-for-llama-cpp"):
        (folder / f"{name}.jinja").write_bytes(templates()[name])
    # A default with which the server itself does not start; its flags can be computed and compared all the same.
    (folder / "raises.jinja").write_bytes(PLAIN + b"{{ raise_exception('never') }}")
    database = ["--db", str(tmp_path / "c.db")]
    assert run(["verify", str(folder), *database]) == 0
    assert "4 templates verified by llama.cpp b11549: 4 equal" in capsys.readouterr().out
    assert run(["scan", str(folder), *database, "--quiet"]) == 0
    assert run(["verify", *database, "--format", "json"]) == 0
    out = capsys.readouterr().out
    found = json.loads(out[out.index("[\n") :])
    assert {result["verdict"] for result in found} == {"equal"}
    assert run(["show", found[0]["sha256"], *database]) == 0
    assert "verified against llama.cpp b11549" in capsys.readouterr().out


@needs_engine
def test_a_running_server_is_held_against_a_file_and_the_database(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served, other = tmp_path / "served.jinja", tmp_path / "other.jinja"
    served.write_bytes(templates()["strict-effort"])
    other.write_bytes(PLAIN)
    database = ["--db", str(tmp_path / "c.db")]
    assert run(["scan", str(served), *database, "--quiet"]) == 0
    capsys.readouterr()
    with running(served) as address:
        assert run(["verify", "--server", address, str(served), *database]) == 0
        assert "runs the template of" in capsys.readouterr().out
        assert run(["verify", "--server", address, str(other), *database]) == 1
        assert "runs another template than" in capsys.readouterr().out
        assert run(["verify", "--server", address, *database, "--format", "json"]) == 0
        document = json.loads(capsys.readouterr().out)
    assert document["differences"] == []
    assert "b11549" in document["fitting_profiles"]
    assert [found["path"] for found in document["model_files"]] == [str(served)]


@contextmanager
def fake_server(status: int, body: bytes) -> Iterator[str]:
    """Something that is no llama-server, or an odd one."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            """Nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b"<html>", "no llama-server"),
        (200, b"[1]", "no llama-server"),
        (200, b'{"status": "ok"}', "no llama-server"),
        (200, b'{"chat_template": "x"}', "too old"),
        (401, b"{}", "--api-key"),
        (503, b"{}", "HTTP 503"),
    ],
)
def test_other_servers_are_told_in_one_line(
    status: int, body: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_server(status, body) as address:
        assert run(["verify", "--server", address, "--db", str(tmp_path / "c.db")]) == 3
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


def test_a_server_that_differs_is_shown_with_the_profile_that_fits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = (
        "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
        "{% for part in m.content %}{{ part }}{% endfor %}{% endif %}{% endfor %}"
    )
    flags = analyse_template(source.encode(), profile="b10809").capabilities
    assert flags is not None
    body = json.dumps({"chat_template": source, "chat_template_caps": flags.as_llama_cpp(), "build_info": "b10809-x"})
    with fake_server(200, body.encode()) as address:
        assert run(["verify", "--server", address, "--db", str(tmp_path / "c.db")]) == 1
    out = capsys.readouterr().out
    assert "different: typed_content is no there, yes by profile b11549" in out
    assert "fits profile b10809" in out
    assert "override?" in out


def test_a_server_that_is_not_there_or_never_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = ["--db", str(tmp_path / "c.db")]
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert run(["verify", "--server", address, "--timeout", "0.3", *database]) == 3
        assert "no answer within 0.3 s" in capsys.readouterr().err
    assert run(["verify", "--server", address, *database]) == 3
    assert "refused" in capsys.readouterr().err
    assert run(["verify", "--server", "file:///etc/passwd", *database]) == 3
    assert "starts with http" in capsys.readouterr().err
