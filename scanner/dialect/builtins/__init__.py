"""Every filter, method, test and function of the dialect (`dialect.md` section 7), by name."""

from __future__ import annotations

from scanner.dialect.builtins.checks import TESTS, Check
from scanner.dialect.builtins.common import slice_of
from scanner.dialect.builtins.functions import FUNCTIONS
from scanner.dialect.builtins.numbers import BOOLEAN_METHODS, NUMBER_METHODS
from scanner.dialect.builtins.objects import NULL_METHODS, OBJECT_METHODS, UNDEFINED_METHODS
from scanner.dialect.builtins.sequences import ARRAY_METHODS
from scanner.dialect.builtins.texts import STRING_METHODS
from scanner.dialect.context import Run
from scanner.dialect.errors import RunFault
from scanner.dialect.values import (
    Array,
    Boolean,
    Builtin,
    Code,
    Float,
    Integer,
    Loop,
    Null,
    Object,
    String,
    Tuple,
    Undefined,
    Value,
    boolean,
)

__all__ = ["GLOBALS", "TESTS", "find_method", "slice_of"]

METHODS: dict[type[Value], dict[str, Code]] = {
    Array: ARRAY_METHODS,
    Boolean: BOOLEAN_METHODS,
    Float: NUMBER_METHODS,
    Integer: NUMBER_METHODS,
    Loop: {},
    Null: NULL_METHODS,
    Object: OBJECT_METHODS,
    String: STRING_METHODS,
    Tuple: ARRAY_METHODS,
    Undefined: UNDEFINED_METHODS,
}


def find_method(value: Value, name: str) -> Code | None:
    """The method or filter `name` of a value's type; None where the type has none of that name. Raises `RunFault` for
    functions, which may not even be asked."""
    methods = METHODS.get(value.__class__)
    if methods is None:
        raise RunFault(f"{value.TYPE} has no builtins")
    return methods.get(name)


def _as_function(name: str, check: Check) -> Code:
    """A test as a global function, which names itself in its errors."""

    def call(run: Run, arguments: list[Value]) -> Value:
        try:
            return boolean(check(run, arguments))
        except RunFault as fault:
            fault.message = fault.message.replace("Function ''", f"Function '{name}'", 1)
            raise

    return call


GLOBALS: dict[str, Builtin] = {
    **{name: Builtin(name, code) for name, code in FUNCTIONS.items()},
    **{
        f"test_is_{name}": Builtin(f"test_is_{name}", _as_function(f"test_is_{name}", check))
        for name, check in TESTS.items()
    },
}
"""What a name means that is no variable."""
