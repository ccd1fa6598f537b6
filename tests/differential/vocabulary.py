"""The words generated programs are made of, and the variables they may use. Data only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

VARIABLES: Mapping[str, object] = {
    "text": "Hello wörld",
    "lines": " a\n\n  b c\n",
    "empty": "",
    "number": 7,
    "negative": -3,
    "ratio": 2.5,
    "yes": True,
    "no": False,
    "nothing": None,
    "items": [3, 1, 2],
    "words": ["b", "A", "c's"],
    "mixed": [1, "a", None, True, 2.5, [1, "x"], {"a": 1}],
    "pairs": [["a", 1], ["b", [2]]],
    "record": {"name": "x", "items": [1, 2], "inner": {"k": "v"}, "get": 1, "n": None},
    "records": [
        {"name": "b", "n": 2, "ok": True},
        {"name": "a", "n": 10, "ok": False, "inner": {"k": 1}},
        {"name": "C", "n": 2.5},
    ],
}
"""What snippets may use besides what a chat template is always given."""

NAMES = (*VARIABLES, "messages", "tools", "bos_token", "add_generation_prompt", "nosuch")
OWN_NAMES = ("x", "y", "z", "v")
"""Names that programs bind themselves."""
LOOP = ("loop.index", "loop.index0", "loop.first", "loop.last", "loop.length", "loop.previtem", "loop.nextitem")
"""What there is inside a loop."""

KEYS = ("name", "n", "ok", "inner", "k", "items", "content", "role", "get", "a", "nosuch", "first", "length")
STRINGS = ("''", "'a'", "'b c'", '"it\'s"', "'x\\n y'", "'é'", "'{}'", "'{{ x }}'", "'A'", "'0'", "'12ab'", "' a '")
NUMBERS = ("0", "1", "2", "3", "-1", "7", "10", "0.5", "2.0", "-1.5", "1000000")

BINARY = ("+", "-", "~", "*", "/", "%", "==", "!=", "<", ">", "<=", ">=", "in", "not in", "and", "or")

TESTS = (
    *("boolean", "callable", "defined", "undefined", "none", "string", "integer", "float", "number", "iterable"),
    *("sequence", "mapping", "lower", "upper", "odd", "even", "true", "false", "escaped", "filter", "nosuch"),
)
TESTS_WITH_ARGUMENT = ("eq", "equalto", "ne", "ge", "gt", "greaterthan", "lt", "lessthan", "in", "sameas", "test")
# The argument is a literal: `divisibleby(0)` ends the real engine's process.
LITERAL_TESTS = ("divisibleby(2)", "divisibleby(3)", "divisibleby 2", "divisibleby('a')")

PLAIN_FILTERS = (
    *("abs", "capitalize", "count", "d", "e", "escape", "first", "int", "items", "keys", "last", "length"),
    *("list", "lower", "lstrip", "max", "min", "nosuch", "reverse", "rstrip", "safe", "string", "strip"),
    *("sum", "title", "trim", "truncate", "unique", "upper", "values", "wordcount", "float", "bool"),
)
FILTERS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(PLAIN_FILTERS, ("",)),
    "default": ("(EXPR)", "('-', true)", "(EXPR, EXPR)", ""),
    "tojson": ("", "(indent=2)", "(ensure_ascii=true)", "(separators=(',', ':'))", "(indent=EXPR)", "(EXPR)"),
    "join": ("", "(', ')", "(EXPR)", "(', ', attribute='name')", "(d='-')"),
    "replace": ("('a', 'b')", "(EXPR, EXPR)", "('a', 'b', 1)", "('', '-')", "('a')"),
    "split": ("", "(' ')", "(EXPR)", "(' ', 1)", "('a', 0)", "(',', -1)"),
    "rsplit": ("(' ', 1)", "('a')"),
    "format": ("(EXPR)", "(1, 'a')", ""),
    "indent": ("", "(2)", "(2, true)", "(EXPR)", "(2, true, true)", "('> ')", "(width=1, first=true)"),
    "startswith": ("('a')", "(EXPR)", "('')"),
    "endswith": ("('a')", "(EXPR)"),
    "select": ("", "('defined')", "('string')", "('odd')", "('eq', 1)", "('name', 'eq', 'a')"),
    "reject": ("", "('none')", "('string', 1)", "('in', [1, 2])"),
    "selectattr": ("('name')", "('ok')", "('n', 'gt', 2)", "('role', 'equalto', 'user')", "('n', 'defined')"),
    "rejectattr": ("('ok')", "('name', 'in', ['a', 'b'])", "('n', 'none', 0)", "(EXPR, 'eq', EXPR)"),
    "map": ("(attribute='name')", "(attribute='nosuch', default='-')", "('upper')", "(attribute=EXPR)", "('name')"),
    "sort": ("", "(true)", "(reverse=true)", "(attribute='n')", "(attribute='name')", "(false, true, 'n')"),
    "dictsort": ("", "(false, 'value')", "(reverse=true)", "(by='value')"),
    "get": ("('name')", "('nosuch')", "('nosuch', EXPR)", "(EXPR)"),
    "slice": ("(0, 2, 1)", "(1, 3, EXPR)", "(2)"),
    "append": ("(EXPR)", "()"),
    "pop": ("", "(0)", "(EXPR)", "()"),
    "float": ("", "(1)", "(default=0.5)"),
    "int": ("", "(5)", "(default=1)", "(base=16)", "(0, 2)"),
}
"""Filter → the argument lists it is tried with; `EXPR` stands for any expression. Methods are tried with the same."""

FUNCTIONS = (
    *("range(3)", "range(1, 7, 2)", "range(EXPR)", "range(3, 0, -1)", "namespace(a=EXPR)", "dict(a=1, b=EXPR)"),
    *("namespace(record)", "dict(pairs)", "tojson(EXPR)", "test_is_defined(EXPR)", "test_is_odd(EXPR)", "nosuch(1)"),
    *("test_is_eq(EXPR, EXPR)", "raise_exception('no')", "raise_exception(EXPR)", "namespace()", "range()"),
)

TEXTS = ("a", " b ", "\n", "  \n  ", "<|im_start|>", "{ }", "\t", "é", "x\n  y", "")
OPENINGS, CLOSINGS = ("{%", "{%-"), ("%}", "-%}")
PRINT_OPENINGS, PRINT_CLOSINGS = ("{{", "{{-"), ("}}", "-}}")

TOOL: Mapping[str, object] = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
USER: Mapping[str, object] = {"role": "user", "content": "Hi there"}
CALL: Mapping[str, object] = {
    "id": "call00001",
    "type": "function",
    "function": {"name": "weather", "arguments": {"city": "Oslo", "days": 2}},
}
PARTS: Sequence[object] = [{"type": "text", "text": "Look"}, {"type": "image"}, {"type": "text", "text": " here"}]

CONVERSATIONS: Sequence[Mapping[str, object]] = (
    {"messages": [USER], "tools": []},
    {"messages": [{"role": "system", "content": " Be brief. "}, USER], "tools": []},
    {
        "messages": [
            {"role": "system", "content": "Be brief."},
            USER,
            {"role": "assistant", "content": "", "reasoning_content": "Hm", "tool_calls": [CALL, CALL]},
            {"role": "tool", "content": "cold", "tool_call_id": "call00001", "name": "weather"},
            {"role": "assistant", "content": "<think>\nSo\n</think>\n\nIt is cold."},
            USER,
        ],
        "tools": [TOOL, TOOL],
    },
    {
        "messages": [{"role": "user", "content": PARTS}, {"role": "assistant", "content": None}, USER],
        "tools": [TOOL],
        "enable_thinking": False,
    },
)
"""What templates are rendered with: each gets the one of its number, in turn."""
