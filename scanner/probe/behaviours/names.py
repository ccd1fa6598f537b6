"""The variables that a template reads, told from its syntax tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from scanner.dialect import Template, nodes
from scanner.dialect.builtins import GLOBALS
from scanner.dialect.nodes import Expression, Node
from scanner.dialect.template import CONSTANTS
from scanner.probe.tree import children, name_of, parameter_names

CLOCK = ("strftime_now", "datetime", "date_string")
"""The only names under which a template gets at the time."""

NEVER_GIVEN = frozenset({*GLOBALS, *CONSTANTS, "loop", "caller"})
"""What the dialect itself gives to a template."""

Known: TypeAlias = "set[str]"
"""The names that are set where the walk is."""


def may_tell_time(template: Template) -> bool:
    """Whether a template holds one of the names without which it cannot know the time."""
    return any(name.encode() in template.source for name in CLOCK)


def free_names(template: Template) -> Mapping[str, int]:
    """The variables that a template reads and has not set before, in the order of the text, each with the line that
    reads it first. Functions of the dialect and constants are none, nor is what is only called: a request cannot give
    functions.

    What one branch of an `if` sets counts as set behind it. A macro runs where it is called, so whatever the template
    sets anywhere counts as set inside.
    """
    walk = _Walk()
    walk.visit_all(template.nodes, set())
    walk.visit_macros()
    return {name: template.place(offset)[0] for name, offset in sorted(walk.found.items(), key=lambda item: item[1])}


class _Walk:
    """Goes through a tree in the order of the text. `found`: name → offset of its first read."""

    def __init__(self) -> None:
        self.found: dict[str, int] = {}
        self._set_anywhere: Known = set()
        self._macros: list[tuple[nodes.Macro, Known]] = []

    def visit_all(self, body: Iterable[Node | None], known: Known) -> None:
        """Visit nodes one after the other; what they set is added to `known`."""
        for node in body:
            if node is not None:
                self.visit(node, known)

    def visit(self, node: Node, known: Known) -> None:
        """Visit a node and all under it."""
        special = _SPECIAL.get(type(node))
        if special is None:
            self.visit_all(children(node), known)
        else:
            special(self, node, known)

    def visit_macros(self) -> None:
        """Visit the bodies of macros, those inside of macros included."""
        while self._macros:
            macro, known = self._macros.pop()
            parameters = {name for name in parameter_names(macro) if name is not None}
            self.visit_all(macro.body, known | self._set_anywhere | parameters)

    # -- what sets names, or holds names that are no variables --------------------------------------------------------

    def name(self, node: nodes.NameNode, known: Known) -> None:
        name = node.name
        if name not in known and name not in NEVER_GIVEN:
            self.found[name] = min(node.offset, self.found.get(name, node.offset))

    def member(self, node: nodes.Member, known: Known) -> None:
        self.visit(node.left, known)
        if node.computed and node.key is not None:
            self.visit(node.key, known)

    def call(self, node: nodes.Call, known: Known) -> None:
        if name_of(node.callee) is None:
            self.visit(node.callee, known)
        self.visit_all(node.arguments, known)

    def keyword(self, node: nodes.Keyword, known: Known) -> None:
        self.visit(node.value, known)

    def filter(self, node: nodes.Filter, known: Known) -> None:
        self.visit(node.operand, known)
        self._applied(node.filter, known)

    def filter_block(self, node: nodes.FilterBlock, known: Known) -> None:
        self._applied(node.filter, known)
        self.visit_all(node.body, known)

    def test(self, node: nodes.Test, known: Known) -> None:
        self.visit(node.operand, known)
        self._applied(node.test, known)

    def _applied(self, applied: Expression, known: Known) -> None:
        """A filter or test: its name is no variable, its arguments may be."""
        if isinstance(applied, nodes.Call):
            self.visit_all(applied.arguments, known)
        elif name_of(applied) is None:
            self.visit(applied, known)

    def set(self, node: nodes.Set, known: Known) -> None:
        if node.value is not None:
            self.visit(node.value, known)
        self.visit_all(node.body, set(known))
        self._assign(node.target, known)

    def _assign(self, target: Expression, known: Known) -> None:
        names = _target_names(target)
        known |= names
        self._set_anywhere |= names
        if isinstance(target, nodes.Member):
            self.visit(target, known)

    def branch(self, node: nodes.If, known: Known) -> None:
        self.visit(node.condition, known)
        first, second = set(known), set(known)
        self.visit_all(node.body, first)
        self.visit_all(node.otherwise, second)
        known |= first | second

    def loop(self, node: nodes.For, known: Known) -> None:
        inner = known | _target_names(node.target)
        if isinstance(node.iterable, nodes.Select):
            self.visit(node.iterable.value, known)
            self.visit(node.iterable.condition, inner)
        else:
            self.visit(node.iterable, known)
        self.visit_all(node.body, inner)
        self.visit_all(node.otherwise, set(known))

    def macro(self, node: nodes.Macro, known: Known) -> None:
        defaults = [parameter.value for parameter in node.parameters if isinstance(parameter, nodes.Keyword)]
        self.visit_all(defaults, known)
        names = _target_names(node.name)
        known |= names
        self._set_anywhere |= names
        self._macros.append((node, set(known)))

    def call_block(self, node: nodes.CallBlock, known: Known) -> None:
        self.visit(node.call, known)
        parameters = [part.key if isinstance(part, nodes.Keyword) else part for part in node.parameters]
        self.visit_all(node.body, known | {name for name in map(name_of, parameters) if name is not None})


def _target_names(target: Expression) -> Known:
    """The names that an assignment sets."""
    if isinstance(target, nodes.TupleLiteral | nodes.ArrayLiteral):
        return {name for item in target.items for name in _target_names(item)}
    name = name_of(target)
    return set() if name is None else {name}


_SPECIAL: Mapping[type[Node], Callable[[_Walk, Any, Known], None]] = {
    nodes.NameNode: _Walk.name,
    nodes.Member: _Walk.member,
    nodes.Call: _Walk.call,
    nodes.Keyword: _Walk.keyword,
    nodes.Filter: _Walk.filter,
    nodes.FilterBlock: _Walk.filter_block,
    nodes.Test: _Walk.test,
    nodes.Set: _Walk.set,
    nodes.If: _Walk.branch,
    nodes.For: _Walk.loop,
    nodes.Macro: _Walk.macro,
    nodes.CallBlock: _Walk.call_block,
}
"""What is visited in a way of its own; each takes the kind of node it stands beside."""
