"""Reading a syntax tree without running it: all its nodes, and what an expression spells out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields

from scanner.dialect import nodes
from scanner.dialect.nodes import Expression, Node

DEFAULTS = frozenset({"default", "d"})
MAKES_OBJECT = frozenset({"namespace", "dict"})

NO_NODES = frozenset({"offset", "place", "computed", "negated", "operator"})
"""Fields that hold no node in any kind of node."""
HOLDING: dict[type[Node], list[str]] = {}
"""The fields of each kind of node that may hold nodes, once asked for."""


def walk(roots: Iterable[Node]) -> Iterator[Node]:
    """All nodes under these and they themselves, in the order of the text."""
    waiting = list(roots)[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(list(children(node))[::-1])


def children(node: Node) -> Iterator[Node]:
    """The nodes that a node holds."""
    kind = type(node)
    names = HOLDING.get(kind)
    if names is None:
        names = HOLDING[kind] = [field.name for field in fields(kind) if field.name not in NO_NODES]
    for name in names:
        yield from _nodes_in(getattr(node, name))


def _nodes_in(held: object) -> Iterator[Node]:
    if isinstance(held, Node):
        yield held
    elif isinstance(held, list | tuple):
        for item in held:
            yield from _nodes_in(item)


def spelled(expression: Expression | None) -> str | None:
    """The text of a string that is spelled out."""
    return expression.value.decode("utf-8", "replace") if isinstance(expression, nodes.StringLiteral) else None


def name_of(expression: Expression | None) -> str | None:
    """The name of a plain name."""
    return expression.name if isinstance(expression, nodes.NameNode) else None


def key_of(member: nodes.Member) -> str | None:
    """The key of a member that is spelled out: `left.key`, `left['key']`."""
    return spelled(member.key) if member.computed else name_of(member.key)


def dotted(expression: Expression) -> str | None:
    """The name of a variable, or of a member of one: `ns.effort` and `ns['effort']` are the same."""
    if not isinstance(expression, nodes.Member):
        return name_of(expression)
    owner, key = dotted(expression.left), key_of(expression)
    return None if owner is None or key is None else f"{owner}.{key}"


def method_of(call: nodes.Call) -> str | None:
    """The name of the method that is called; None for a plain function."""
    return key_of(call.callee) if isinstance(call.callee, nodes.Member) else None


def filter_name(expression: nodes.Filter) -> str | None:
    """The name of a filter, with or without arguments."""
    applied = expression.filter
    return name_of(applied.callee if isinstance(applied, nodes.Call) else applied)


def filter_arguments(expression: nodes.Filter) -> list[Expression]:
    """The arguments of a filter."""
    return expression.filter.arguments if isinstance(expression.filter, nodes.Call) else []


def parameter_names(macro: nodes.Macro) -> list[str | None]:
    """The names of a macro's parameters, by position."""
    return [
        name_of(parameter.key if isinstance(parameter, nodes.Keyword) else parameter) for parameter in macro.parameters
    ]


def object_entries(expression: object) -> Iterator[tuple[nodes.StringLiteral, Expression]]:
    """The entries under strings of an object that is spelled out, or made from keywords (`namespace(effort=…)`)."""
    if isinstance(expression, nodes.ObjectLiteral):
        for key, value in expression.entries:
            if isinstance(key, nodes.StringLiteral):
                yield key, value
    elif isinstance(expression, nodes.Call) and name_of(expression.callee) in MAKES_OBJECT:
        for argument in expression.arguments:
            name = name_of(argument.key) if isinstance(argument, nodes.Keyword) else None
            if isinstance(argument, nodes.Keyword) and name is not None:
                yield nodes.StringLiteral(argument.offset, name.encode()), argument.value


def choices(expression: Expression) -> list[Expression]:
    """The expressions one of whose values an expression takes: the branches of `if`, both sides of `or` and `and`, a
    filter's operand and default."""
    if isinstance(expression, nodes.Ternary):
        return [expression.then, expression.otherwise]
    if isinstance(expression, nodes.Select):
        return [expression.value]
    if isinstance(expression, nodes.Binary) and expression.operator in ("or", "and"):
        return [expression.left, expression.right]
    if isinstance(expression, nodes.Filter):
        defaults = filter_arguments(expression) if filter_name(expression) in DEFAULTS else []
        return [expression.operand, *defaults]
    return []


def printed(body: Iterable[Node]) -> Iterator[Expression]:
    """What a block `set` may hold: each value it prints, and each text, stripped, as a string."""
    for node in walk(body):
        if isinstance(node, nodes.Print):
            yield node.value
        elif isinstance(node, nodes.Text) and node.value.strip():
            yield nodes.StringLiteral(node.offset, node.value.strip())
