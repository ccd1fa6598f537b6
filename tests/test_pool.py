"""A task that hangs, dies or eats memory costs itself and nothing else."""

from __future__ import annotations

import pytest

from scanner.pool import Lost, TaskLimits, WorkerPool
from tests.hostile_tasks import double, misbehave

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
