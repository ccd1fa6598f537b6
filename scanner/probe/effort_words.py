"""The reasoning efforts that a template knows by name, taken from its syntax tree (`behaviours.md` section 2).

A word counts when the template compares with it, looks up by it, lists it or puts it in place for `reasoning_effort` or
`reasoning_strength`, directly or through variables assigned from them. The tree is read without regard to the order in
which it would run: each word found is tried, so one too many costs a render and is told apart by its outcome.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from scanner.dialect import nodes
from scanner.dialect.nodes import Expression, Node
from scanner.probe.tree import (
    DEFAULTS,
    choices,
    dotted,
    filter_arguments,
    filter_name,
    key_of,
    method_of,
    name_of,
    object_entries,
    parameter_names,
    printed,
    spelled,
    walk,
)

EFFORT_NAMES = ("reasoning_effort", "reasoning_strength")
"""The variables that llama.cpp binds an effort to (`chat.md` section 3, step 10)."""

MOST_WORDS = 16
"""Words taken from one template, the first in its text: each is rendered. The richest real one has three."""
LONGEST_WORD = 64
"""Bytes of a word; what is longer is an instruction, not a name."""
MOST_STEPS = 20_000
"""Values looked at in one template; one that is made to be slow is left with what was found."""
MOST_DETOURS = 50
"""Names behind which a value is looked for."""

COMPARISONS = frozenset({"==", "!=", "in", "not in"})
AFFIXES = frozenset({"startswith", "endswith"})
LOOKUPS = frozenset({"get", "pop"})
SELECTIONS = frozenset({"select", "reject", "selectattr", "rejectattr"})
SEPARATORS = re.compile(rb"[\s,;|/]+")

Word: TypeAlias = nodes.StringLiteral


def mentions_effort(text: bytes) -> bool:
    """Whether a template's text holds one of the names at all. Variables are reached by their names only, so without
    one no effort can change anything."""
    return any(name.encode() in text for name in EFFORT_NAMES)


def effort_words(statements: Sequence[nodes.Statement]) -> tuple[str, ...]:
    """The efforts that a parsed template (`Template.nodes`) knows by name: each once, in the order of the text, at most
    `MOST_WORDS` of at most `LONGEST_WORD` bytes. Never the empty string, and nothing that cannot be shown."""
    tree = list(walk(statements))
    found = sorted(Finder(Bindings(tree)).find(tree), key=lambda literal: literal.offset)
    words = {literal.value.decode("utf-8", "replace"): None for literal in found if len(literal.value) <= LONGEST_WORD}
    return tuple([word for word in words if word.isprintable() and word.strip() and "\ufffd" not in word][:MOST_WORDS])


@dataclass(frozen=True, slots=True)
class Item:
    """What a `for` binds: an item of a sequence or a key of an object; `position` is that of the name in a tuple."""

    source: Expression
    position: int | None = None


Bound: TypeAlias = Expression | Item


class Bindings:
    """What each name of a template is bound to anywhere in it: by `set`, `for`, and the arguments of macros; and which
    names the effort may reach. The name of an object's member is dotted (`ns.effort`)."""

    def __init__(self, tree: Sequence[Node]) -> None:
        self.bound: dict[str, list[Bound]] = {}
        self.macros: dict[str, nodes.Macro] = {}
        self.known: dict[Expression, frozenset[str]] = {}
        for node in tree:
            if isinstance(node, nodes.Macro) and isinstance(node.name, nodes.NameNode):
                self.macros[node.name.name] = node
        for node in tree:
            self._add(node)
        self.efforts = self._reached()

    def carries(self, expression: Expression) -> bool:
        """Whether an expression's value may be the effort, changed in nothing but form (`|lower`)."""
        return not self.efforts.isdisjoint(self._sources(expression))

    def _sources(self, expression: Expression) -> frozenset[str]:
        """The names whose value an expression may hand on. Kept: what stands inside others is asked about again."""
        known = self.known.get(expression)
        if known is None:
            name = dotted(expression)
            inner = self._handed_on(expression) if name is None else []
            known = frozenset([name] if name is not None else []).union(*[self._sources(one) for one in inner])
            self.known[expression] = known
        return known

    def _handed_on(self, expression: Expression) -> list[Expression]:
        """A method hands on what it is called on, a macro what it is given; a look-up gives something else."""
        if not isinstance(expression, nodes.Call):
            return choices(expression)
        if isinstance(expression.callee, nodes.Member):
            return [] if method_of(expression) in LOOKUPS else [expression.callee.left]
        if name_of(expression.callee) not in self.macros:
            return []
        return [
            argument.value if isinstance(argument, nodes.Keyword) else argument for argument in expression.arguments
        ]

    def _reached(self) -> frozenset[str]:
        """The names that an effort may reach, handed on from name to name."""
        hands_to: dict[str, set[str]] = {}
        for name, values in self.bound.items():
            for value in values:
                for source in frozenset[str]() if isinstance(value, Item) else self._sources(value):
                    hands_to.setdefault(source, set()).add(name)
        reached = set(EFFORT_NAMES)
        waiting = list(EFFORT_NAMES)
        while waiting:
            fresh = hands_to.get(waiting.pop(), set()) - reached
            reached |= fresh
            waiting.extend(fresh)
        return frozenset(reached)

    def _add(self, node: Node) -> None:
        if isinstance(node, nodes.Set):
            for value in [node.value] if node.value is not None else printed(node.body):
                self._add_set(node.target, value)
        elif isinstance(node, nodes.For):
            self._add_for(node)
        elif isinstance(node, nodes.Macro):
            for parameter in node.parameters:
                if isinstance(parameter, nodes.Keyword):
                    self._bind(name_of(parameter.key), parameter.value)
        elif isinstance(node, nodes.Call):
            self._add_call(node)

    def _add_set(self, target: Expression, value: Expression) -> None:
        if not isinstance(target, nodes.TupleLiteral):
            self._bind(dotted(target), value)
        elif isinstance(value, nodes.TupleLiteral | nodes.ArrayLiteral):
            for one, part in zip(target.items, value.items, strict=False):
                self._bind(dotted(one), part)

    def _add_for(self, node: nodes.For) -> None:
        if isinstance(node.target, nodes.TupleLiteral):
            for position, target in enumerate(node.target.items):
                self._bind(name_of(target), Item(node.iterable, position))
        else:
            self._bind(name_of(node.target), Item(node.iterable))

    def _add_call(self, call: nodes.Call) -> None:
        macro = self.macros.get(name_of(call.callee) or "")
        names = parameter_names(macro) if macro is not None else []
        for name, argument in zip(names, call.arguments, strict=False):
            if not isinstance(argument, nodes.Keyword):
                self._bind(name, argument)
        for argument in call.arguments if names else ():
            if isinstance(argument, nodes.Keyword):
                self._bind(name_of(argument.key), argument.value)

    def _bind(self, name: str | None, value: Bound) -> None:
        if name is not None:
            self.bound.setdefault(name, []).append(value)
            for key, entry in object_entries(value):
                self._bind(f"{name}.{spelled(key)}", entry)


class Finder:
    """Finds the strings that stand beside an effort."""

    def __init__(self, bindings: Bindings) -> None:
        self.bindings = bindings
        self.carries = bindings.carries
        self.steps = MOST_STEPS

    def find(self, tree: Iterable[Node]) -> Iterator[Word]:
        """All of them, as they come; some more than once."""
        for node in tree:
            if isinstance(node, nodes.Binary):
                yield from self._beside_operator(node)
            elif isinstance(node, nodes.Test):
                if isinstance(node.test, nodes.Call) and self.carries(node.operand):
                    yield from self._all_strings(node.test.arguments)
            elif isinstance(node, nodes.Member):
                if node.computed and node.key is not None and self.carries(node.key):
                    yield from self._keys(node.left)
            elif isinstance(node, nodes.Call):
                yield from self._beside_method(node)
            elif isinstance(node, nodes.Filter):
                yield from self._beside_filter(node)
            elif isinstance(node, nodes.Ternary):
                yield from self._beside_choice([node.then, node.otherwise])
            elif isinstance(node, nodes.Set) and self.carries(node.target):
                yield from self._assigned(node)

    def _beside_operator(self, node: nodes.Binary) -> Iterator[Word]:
        if node.operator in COMPARISONS:
            if self.carries(node.left):
                yield from self._strings(node.right, split=node.operator.endswith("in"))
            if self.carries(node.right):
                yield from self._strings(node.left)
        elif node.operator == "or":
            yield from self._beside_choice([node.left, node.right])

    def _beside_method(self, call: nodes.Call) -> Iterator[Word]:
        method = method_of(call)
        if not isinstance(call.callee, nodes.Member) or not call.arguments:
            return
        if method in LOOKUPS and self.carries(call.arguments[0]):
            yield from self._keys(call.callee.left)
        elif method in AFFIXES and self.carries(call.callee.left):
            yield from self._all_strings(call.arguments)

    def _beside_filter(self, node: nodes.Filter) -> Iterator[Word]:
        name, arguments = filter_name(node), filter_arguments(node)
        if name in DEFAULTS and self.carries(node.operand):
            yield from self._spelled_out(arguments)
        elif name in SELECTIONS and any(self.carries(argument) for argument in arguments):
            attribute = spelled(arguments[0]) if name.endswith("attr") else None
            for item in self._values(Item(node.operand), set()):
                chosen = item if attribute is None else entry_of(item, attribute)
                if chosen is not None:
                    yield from self._strings(chosen)

    def _beside_choice(self, branches: Sequence[Expression]) -> Iterator[Word]:
        """The words that stand in for an effort: `reasoning_effort or 'high'`."""
        if any(self.carries(branch) for branch in branches):
            yield from self._spelled_out(branches)

    def _assigned(self, node: nodes.Set) -> Iterator[Word]:
        """The words that a template itself sets an effort to."""
        yield from self._spelled_out([node.value] if node.value is not None else printed(node.body))

    # -- what expressions spell out --------------------------------------------------------------------------------

    def _spelled_out(self, expressions: Iterable[Expression]) -> Iterator[Word]:
        """The strings that expressions are, or have for branches."""
        waiting = list(expressions)
        self.steps -= len(waiting)
        while waiting and self.steps >= 0:
            expression = waiting.pop()
            if isinstance(expression, nodes.StringLiteral):
                yield expression
            else:
                inner = choices(expression)
                self.steps -= len(inner)
                waiting.extend(inner)

    def _all_strings(self, expressions: Iterable[Expression]) -> Iterator[Word]:
        for expression in expressions:
            yield from self._strings(expression)

    def _strings(self, expression: Expression, *, split: bool = False) -> Iterator[Word]:
        """The strings that an expression may be (`split`: or that stand in it), or may hold as items or keys."""
        for value in self._values(expression, set()):
            if isinstance(value, nodes.StringLiteral):
                yield from split_up(value) if split else [value]
            else:
                yield from self._spelled_out(items_of(value))

    def _keys(self, expression: Expression) -> Iterator[Word]:
        """The keys of the objects that an expression may be."""
        for value in self._values(expression, set()):
            for key, _ in object_entries(value):
                yield key

    def _values(self, expression: Bound, seen: set[Bound]) -> Iterator[Expression]:
        """The strings, sequences and objects that an expression may be, as the template spells them out. `seen` are the
        names gone through, so that none is twice."""
        self.steps -= 1
        if self.steps < 0 or len(seen) > MOST_DETOURS:
            return
        if isinstance(expression, Item):
            yield from self._values_of_item(expression, seen)
        elif isinstance(expression, nodes.StringLiteral):
            yield expression
        elif isinstance(expression, nodes.ArrayLiteral | nodes.TupleLiteral):
            self.steps -= len(expression.items)
            yield expression
        elif isinstance(expression, nodes.NameNode | nodes.Member):
            yield from self._values_of_name(expression, seen)
        elif entries := list(object_entries(expression)):
            self.steps -= len(entries)
            yield expression
        elif isinstance(expression, nodes.Call) and isinstance(expression.callee, nodes.Member):
            split = method_of(expression) == "split"
            for value in self._values(expression.callee.left, seen):
                yield from split_up(value) if split and isinstance(value, nodes.StringLiteral) else [value]
        elif isinstance(expression, nodes.Binary) and expression.operator == "+":
            yield from self._values(expression.left, seen)
            yield from self._values(expression.right, seen)
        else:
            for choice in choices(expression):
                yield from self._values(choice, seen)

    def _values_of_item(self, item: Item, seen: set[Bound]) -> Iterator[Expression]:
        for holder in self._values(item.source, seen):
            for value in items_of(holder, item.position):
                yield from self._values(value, seen)

    def _values_of_name(self, expression: nodes.NameNode | nodes.Member, seen: set[Bound]) -> Iterator[Expression]:
        for bound in self.bindings.bound.get(dotted(expression) or "", ()):
            if bound not in seen:
                seen.add(bound)
                yield from self._values(bound, seen)
        key = key_of(expression) if isinstance(expression, nodes.Member) else None
        if isinstance(expression, nodes.Member) and key is not None:
            for holder in self._values(expression.left, seen):
                entry = entry_of(holder, key)
                if entry is not None:
                    yield from self._values(entry, seen)


def items_of(holder: Expression, position: int | None = None) -> Iterator[Expression]:
    """What a loop over a sequence or an object gives; with a position, that part of each item (of an object, its key
    and its value)."""
    if isinstance(holder, nodes.ArrayLiteral | nodes.TupleLiteral):
        for item in holder.items:
            if position is None:
                yield item
            elif isinstance(item, nodes.ArrayLiteral | nodes.TupleLiteral):
                yield from item.items[position : position + 1]
    else:
        for key, value in object_entries(holder):
            yield value if position == 1 else key


def entry_of(holder: Expression, name: str) -> Expression | None:
    """The value of a key in an object that is spelled out."""
    for key, value in object_entries(holder):
        if spelled(key) == name:
            return value
    return None


def split_up(listed: Word) -> Iterator[Word]:
    """The words of a string that lists them (`'low,high'.split(',')`, `effort in 'low high'`)."""
    for word in SEPARATORS.split(listed.value):
        yield nodes.StringLiteral(listed.offset, word)
