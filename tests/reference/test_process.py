"""Renders in a process of their own: hostile templates cost themselves, and no more than was allowed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

import pytest

from scanner.pool import TaskLimits, WorkerPool
from scanner.reference import ErrorKind, ReferenceProcess, ReferenceProcessError, ReferenceResult
from tests.reference.cases import CASES, VARIABLES, Case
from tests.reference.tasks import render_twice

ENDLESS = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
UNLESS_X = "{% if x is defined %}{{ x }}{% else %}" + ENDLESS + "{% endif %}"
HANG: Mapping[str, object] = {}


@pytest.fixture(scope="module")
def process() -> Iterator[ReferenceProcess]:
    with ReferenceProcess(seconds=1) as process:
        yield process


@pytest.fixture(scope="module")
def impatient() -> Iterator[ReferenceProcess]:
    with ReferenceProcess(seconds=0.5) as process:
        yield process


def summary(results: tuple[ReferenceResult, ...]) -> list[str]:
    """Each result's output or message."""
    return [result.output if result.error is None else result.error.message for result in results]


def wait_for(condition: Callable[[], bool]) -> bool:
    """Whether it comes true within ten seconds."""
    end = time.monotonic() + 10
    while not (true := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return true


def children(pid: int) -> list[int]:
    """The processes that a process started."""
    tasks = Path(f"/proc/{pid}/task")
    if not tasks.exists():
        pytest.skip("no /proc here to find processes in")
    return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]


def child_of(owner: ReferenceProcess) -> int:
    """The process that renders for it, which it starts anew."""
    owner.close()
    before = set(children(os.getpid()))
    owner.render_all(b"x", [{}])
    (child,) = set(children(os.getpid())) - before
    return child


def ended(pid: int) -> bool:
    """It is gone, or nobody has asked yet how it ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_a_feature_is_the_same_from_outside(process: ReferenceProcess, case: Case) -> None:
    tokens = {"bos_token": "<s>", "eos_token": "</s>", "tools": None, "documents": None, "add_generation_prompt": False}
    now = datetime(2026, 11, 29, 12, 34, 56).timestamp()
    source = case.template.encode(errors="surrogatepass")
    (result,) = process.render_all(source, [{**VARIABLES, **tokens}], now=now)
    if "\udc80" in case.template:  # bytes are UTF-8, or no template
        assert result.error and result.error.message.startswith("not UTF-8")
    else:
        assert (result.output if result.ok else None) == case.output


def test_results_come_in_the_order_of_the_conversations(process: ReferenceProcess) -> None:
    results = process.render_all(b"{{ x }}", [{"x": number} for number in range(500)])
    assert summary(results) == [str(number) for number in range(500)]


def test_failures_stand_in_their_places(process: ReferenceProcess) -> None:
    results = process.render_all(b"{{ 1 // x }}", [{"x": 1}, {"x": 0}, {"x": 1}])
    assert summary(results) == ["1", "ZeroDivisionError: integer division or modulo by zero", "1"]


def test_a_syntax_error_is_the_result_of_every_render(process: ReferenceProcess) -> None:
    results = process.render_all(b"\n{% if %}", [{}, {}])
    assert [(result.error.kind, result.error.line) for result in results if result.error] == [("syntax", 2)] * 2


def test_nothing_to_render(process: ReferenceProcess) -> None:
    assert process.render_all(ENDLESS.encode(), []) == ()


def test_any_text_survives(process: ReferenceProcess) -> None:
    text = "".join(map(chr, range(0x300))) + "\u2028\ud800\udfff\ufeff\U0001f600"
    echoed, failed = process.render_all(b"{{ raise_exception(x) if bad else x }}", [{"x": text}, {"x": text, "bad": 1}])
    assert echoed.output == text
    assert failed.error and failed.error.message == text


def test_large_texts_pass(process: ReferenceProcess) -> None:
    text = "\x01" * (5 * 1024**2)
    assert process.render_all(b"{{ x }}", [{"x": text}])[0].output == text


def test_the_clock_is_given(process: ReferenceProcess) -> None:
    source = b"{{ strftime_now('%Y') }}"
    assert summary(process.render_all(source, [{}], now=datetime(1999, 6, 1).timestamp())) == ["1999"]
    assert summary(process.render_all(source, [{}])) == [f"{datetime.now():%Y}"]


def test_what_is_no_data_is_the_callers_mistake(process: ReferenceProcess) -> None:
    with pytest.raises(TypeError):
        process.render_all(b"x", [{"x": object()}])
    assert summary(process.render_all(b"x", [{}])) == ["x"]


DEEP = "{% set n = namespace(x=[]) %}{% for i in range(9999) %}{% set n.x = [n.x] %}{% endfor %}"
HOSTILE = {
    "endless loops": ENDLESS,
    "a huge text": "{{ 'x' * 10 ** 10 }}",
    "a huge text of large ones": "{{ ('x' * 100000) * 100000 }}",
    "a text that doubles": "{% set n = namespace(x='x') %}"
    "{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
    "a huge list": "{{ (range(99999) | list) * 99999 }}",
    "a huge join": "{{ ['x' * 10000] * 99999 | join('y' * 1000) }}{{ (['x' * 10000] * 99999) | join('y' * 1000) }}",
    "a wide format": "{{ '%10000000000d' % 1 }}",
    "a wide str.format": "{{ '{:>10000000000}'.format(1) }}",
    "a wide center": "{{ 'x' | center(10 ** 10) }}",
    "a huge batch": "{{ [1] | batch(10 ** 9, 'x') | list }}",
    "a huge lipsum": "{{ lipsum(10 ** 7) }}",
    "a huge number": "{% set x = 10 ** (10 ** 9) %}",
    "a huge number of variables": "{% set y = 10 ** x %}",
    "a slow filter": "{{ ('a ' * 10 ** 6) | wordwrap(1) }}",
    "much output": "{% for a in range(99999) %}{{ 'x' * 1000 }}{% endfor %}",
    "deep macros": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "deep brackets": "{{ " + "(" * 99999 + ")" * 99999 + " }}",
    "deep blocks": "{% if a %}" * 9999 + "{% endif %}" * 9999,
    "a deep value": DEEP + "{{ n.x }}",
    "a deep value as JSON": DEEP + "{{ n.x | tojson }}",
    "an exception of much text": "{{ raise_exception('x' * 10 ** 9) }}",
}


@pytest.mark.parametrize("template", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_template_meets_a_limit(impatient: ReferenceProcess, template: str) -> None:
    start = time.monotonic()
    results = impatient.render_all(template.encode(), [{"x": 10**9}] * 5)
    assert time.monotonic() - start < 3
    assert [result.error.kind for result in results if result.error] == [ErrorKind.LIMIT] * 5
    assert summary(impatient.render_all(b"alive", [{}])) == ["alive"]


def test_a_limit_costs_its_own_render(process: ReferenceProcess) -> None:
    results = process.render_all(UNLESS_X.encode(), [{"x": 1}, HANG, {"x": 2}, {"x": 3}])
    assert summary(results) == ["1", "rendering took longer than 1 s", "2", "3"]


def test_two_limits_cost_what_follows(process: ReferenceProcess) -> None:
    results = process.render_all(UNLESS_X.encode(), [HANG, {"x": 1}, HANG, {"x": 2}])
    assert summary(results) == [
        "rendering took longer than 1 s",
        "1",
        "rendering took longer than 1 s",
        "not tried: 2 renders met a limit",
    ]


def test_renders_that_are_slow_one_by_one_meet_the_limit_together(impatient: ReferenceProcess) -> None:
    slow = "{% for a in range(400) %}{% for b in range(10000) %}{% endfor %}{% endfor %}"
    start = time.monotonic()
    results = impatient.render_all(slow.encode(), [{}] * 1000)
    assert time.monotonic() - start < 4
    assert results[-1].error and results[-1].error.message.startswith("not tried: ")


def test_a_slow_compilation_is_tried_once(process: ReferenceProcess) -> None:
    start = time.monotonic()
    results = process.render_all(b"{% set x = 10 ** (10 ** 9) %}", [{}] * 3)
    assert summary(results) == ["compiling took longer than 1 s"] * 3
    assert time.monotonic() - start < 2


def test_a_lack_of_memory_is_told_with_its_line(process: ReferenceProcess) -> None:
    results = process.render_all(b"{% if not x %}\n{{ 'x' * 10 ** 9 }}{% endif %}{{ x }}", [{"x": 1}, {}, {"x": 2}])
    assert summary(results) == ["1", "out of memory", "2"]
    assert results[1].error and results[1].error.line == 2


def test_the_death_of_the_child_costs_one_render(process: ReferenceProcess) -> None:
    killer = threading.Timer(0.3, os.kill, [child_of(process), signal.SIGKILL])
    killer.start()
    assert summary(process.render_all(UNLESS_X.encode(), [{"x": 1}, HANG, {"x": 2}])) == [
        "1",
        "rendering ended the process (signal 9)",
        "2",
    ]
    killer.join()


def test_the_death_of_an_idle_child_costs_nothing(process: ReferenceProcess) -> None:
    child = child_of(process)
    os.kill(child, signal.SIGKILL)
    assert wait_for(lambda: ended(child))
    assert summary(process.render_all(b"alive", [{}])) == ["alive"]


def test_the_child_ignores_ctrl_c(process: ReferenceProcess) -> None:
    child = child_of(process)
    os.kill(child, signal.SIGINT)
    assert summary(process.render_all(b"alive", [{}])) == ["alive"]
    assert not ended(child)


def test_leaving_ends_the_child() -> None:
    with ReferenceProcess() as process:
        child = child_of(process)
    assert ended(child)


def test_an_interruption_leaves_no_answers_behind(process: ReferenceProcess) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    process.render_all(b"x", [{}])
    usual = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            process.render_all(UNLESS_X.encode(), [HANG])
    finally:
        signal.signal(signal.SIGALRM, usual)
    assert summary(process.render_all(b"alive", [{}])) == ["alive"]


@pytest.mark.parametrize("source", [b"x", ENDLESS.encode()], ids=["idle", "busy"])
def test_no_orphan_stays(source: bytes) -> None:
    script = f"""
import time
from scanner.reference import ReferenceProcess
process = ReferenceProcess(seconds=1)
process.render_all(b"x", [{{}}])
print("ready", flush=True)
process.render_all({source!r}, [{{}}])
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as owner:
        assert owner.stdout and owner.stdout.readline() == b"ready\n"
        (child,) = children(owner.pid)
        time.sleep(0.2)
        owner.kill()
    assert wait_for(lambda: ended(child))


def test_the_child_sees_no_secrets_and_no_modules_of_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "base64.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOME_TOKEN", "secret")
    with ReferenceProcess() as process:
        child = child_of(process)
        assert summary(process.render_all(b"alive", [{}])) == ["alive"]
        assert b"secret" not in Path(f"/proc/{child}/environ").read_bytes()


@pytest.mark.parametrize(
    ("interpreter", "reason"), [("/bin/false", "does not start: exit code 1"), ("/nothing", "cannot be started: ")]
)
def test_a_child_that_cannot_start_is_said(monkeypatch: pytest.MonkeyPatch, interpreter: str, reason: str) -> None:
    monkeypatch.setattr(sys, "executable", interpreter)
    with ReferenceProcess() as process, pytest.raises(ReferenceProcessError, match=reason):
        process.render_all(b"x", [{}])


def test_it_works_in_the_workers_of_a_scan() -> None:
    with WorkerPool(1, TaskLimits(seconds=20, memory=1024**3)) as pool:
        results = list(pool.map(render_twice, ["{{ x }}", ENDLESS, "{{ x + 1 }}"]))
    shown = [summary(result) for _, result in results if isinstance(result, tuple)]
    assert shown == [["1", "2"], ["rendering took longer than 1 s"] * 2, ["2", "3"]]
