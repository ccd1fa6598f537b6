"""A task that hangs, dies or eats memory costs itself and nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

from scanner.pool import Lost, TaskLimits, WorkerPool
from tests.hostile_tasks import double, misbehave
from tests.killing import PATIENCE, descendants, environment, is_alive, until

LIMITS = TaskLimits(seconds=3, memory=1024**3)


def test_results_come_in_the_order_of_the_tasks() -> None:
    with WorkerPool(2) as pool:
        assert list(pool.map(double, range(50))) == [(number, 2 * number) for number in range(50)]


def test_a_bad_task_is_lost_and_the_others_are_not() -> None:
    tasks = ["a", "hang", "b", "die", "c", "exit", "d", "eat", "e"]
    with WorkerPool(2, LIMITS) as pool:
        results = dict(pool.map(misbehave, tasks))
    lost = {task: result.reason for task, result in results.items() if isinstance(result, Lost)}
    assert set(lost) == {"hang", "die", "exit", "eat"}
    assert lost["hang"] == "took longer than 3 s"
    assert "worker process" in lost["die"]
    assert lost["eat"] == "needed more than 1024 MiB of memory"
    assert [results[task] for task in "abcde"] == list("abcde")


def test_tasks_are_taken_a_few_at_a_time() -> None:
    taken: list[int] = []

    def tasks() -> object:
        for number in range(1000):
            taken.append(number)
            yield number

    with WorkerPool(1) as pool:
        results = pool.map(double, tasks())  # type: ignore[arg-type]  # a generator of int
        next(results)
        assert len(taken) < 20
        results.close()  # type: ignore[attr-defined]  # it is a generator


def test_an_error_in_the_parent_ends_the_workers_at_once() -> None:
    with pytest.raises(KeyboardInterrupt), WorkerPool(1) as pool:
        next(pool.map(double, [1]))
        raise KeyboardInterrupt


BUSY = """
from scanner.pool import WorkerPool
from tests.hostile_tasks import misbehave
with WorkerPool(2) as pool:
    for task, result in pool.map(misbehave, ["a", "b", *["hang"] * 20]):
        print(result, flush=True)
"""


def test_workers_end_with_a_parent_that_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-P", "-c", BUSY], stdout=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "a\n"
        workers = descendants(process.pid)
        assert len(workers) >= 2
        process.kill()
        process.wait(PATIENCE)
        until(lambda: not any(map(is_alive, workers)), seconds=20)


def test_leaving_the_pool_while_workers_start_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        with WorkerPool(4) as pool:
            assert list(pool.map(double, [1])) == [(1, 2)]
    assert capfd.readouterr().err == ""
