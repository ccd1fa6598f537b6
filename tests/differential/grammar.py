"""Programs of the dialect made by rules: single expressions, statements, and whole chat templates.

Every choice is asked of a `random.Random`, so a program is a function of its seed. Most programs parse; what they do
when they run is open, errors included. Nothing is made that is known to end the real engine's process: no macro calls
itself, and no division test has zero as its argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeAlias

from tests.differential import vocabulary as words

Rule: TypeAlias = Callable[[int], str]
"""What makes source text, with the depth that is left to it."""

DEPTH = 3
"""How deep expressions nest."""


class Grammar:
    """One rule a method; each gives source text."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.bound: list[str] = []
        self.macros = 0

    # -- small things ------------------------------------------------------------------------------------------------

    def one(self, choices: Sequence[str]) -> str:
        """One of these."""
        return self.random.choice(choices)

    def by(self, rules: Sequence[tuple[int, Rule]]) -> Rule:
        """One of the rules, by weight."""
        return self.random.choices([rule for _, rule in rules], [weight for weight, _ in rules])[0]

    def often(self, probability: float) -> bool:
        """True with this probability."""
        return self.random.random() < probability

    def name(self) -> str:
        """A variable; one that the program bound itself more often than not, where there is one."""
        if self.bound and self.often(0.6):
            return self.one(self.bound)
        return self.one(words.NAMES)

    def bind(self) -> str:
        """A name that is bound from here on."""
        name = self.one(words.OWN_NAMES)
        self.bound.append(name)
        return name

    def fill(self, pattern: str, depth: int) -> str:
        """A pattern with each `EXPR` replaced by an expression."""
        return re.sub("EXPR", lambda _: self.expression(depth), pattern)

    # -- expressions -------------------------------------------------------------------------------------------------

    def expression(self, depth: int = DEPTH) -> str:
        """Any expression, at most `depth` rules deep."""
        if depth <= 0 or self.often(0.15):
            return self.atom()
        rules: Sequence[tuple[int, Rule]] = (
            (20, self.filtered),
            (12, self.binary),
            (10, self.test),
            (10, self.member),
            (6, self.method),
            (6, self.sliced),
            (5, self.literal),
            (4, self.ternary),
            (4, self.function),
            (4, self.parenthesised),
            (3, self.negated),
            (1, self.signed),
        )
        return self.by(rules)(depth - 1)

    def atom(self) -> str:
        kind = self.random.random()
        if kind < 0.55:
            return self.name()
        if kind < 0.75:
            return self.one(words.STRINGS)
        if kind < 0.92:
            return self.one(words.NUMBERS)
        return self.one(("true", "false", "none", "[]", "{}", "True", "None"))

    def filtered(self, depth: int) -> str:
        name = self.one(list(words.FILTERS))
        return f"{self.tight(depth)}|{name}{self.fill(self.one(words.FILTERS[name]), depth)}"

    def binary(self, depth: int) -> str:
        return f"{self.expression(depth)} {self.one(words.BINARY)} {self.expression(depth)}"

    def test(self, depth: int) -> str:
        kind = self.random.random()
        test = self.one(words.TESTS)
        if kind < 0.3:
            name, argument = self.one(words.TESTS_WITH_ARGUMENT), self.expression(depth - 1)
            test = f"{name}({argument})" if self.often(0.7) else f"{name} {self.atom()}"
        elif kind < 0.35:
            test = self.one(words.LITERAL_TESTS)
        return f"{self.tight(depth)} is {'not ' if self.often(0.25) else ''}{test}"

    def member(self, depth: int) -> str:
        left = self.tight(depth)
        kind = self.random.random()
        if kind < 0.4:
            return f"{left}.{self.one(words.KEYS)}"
        if kind < 0.6:
            return f"{left}['{self.one(words.KEYS)}']"
        if kind < 0.8:
            return f"{left}[{self.one(words.NUMBERS)}]"
        return f"{left}[{self.expression(depth)}]"

    def method(self, depth: int) -> str:
        name = self.one(list(words.FILTERS))
        arguments = self.one(words.FILTERS[name]) or "()"
        return f"{self.tight(depth)}.{name}{self.fill(arguments, depth)}"

    def sliced(self, depth: int) -> str:
        parts = [self.one(("", "", "0", "1", "-1", "2", "-2")) for _ in range(self.random.choice((2, 2, 3)))]
        if self.often(0.05):
            parts[0] = self.expression(depth - 1)
        return f"{self.tight(depth)}[{':'.join(parts)}]"

    def literal(self, depth: int) -> str:
        count = self.random.randrange(4)
        values = [self.expression(depth - 1) for _ in range(count)]
        kind = self.random.random()
        if kind < 0.4:
            return f"[{', '.join(values)}]"
        if kind < 0.6 and count > 1:
            return f"({', '.join(values)})"
        keys = [f"'{self.one(words.KEYS)}'" if self.often(0.85) else self.atom() for _ in values]
        return "{" + ", ".join(f"{key}: {value}" for key, value in zip(keys, values, strict=True)) + "}"

    def ternary(self, depth: int) -> str:
        otherwise = f" else {self.expression(depth)}" if self.often(0.8) else ""
        return f"{self.expression(depth)} if {self.condition(depth)}{otherwise}"

    def function(self, depth: int) -> str:
        return self.fill(self.one(words.FUNCTIONS), depth - 1)

    def parenthesised(self, depth: int) -> str:
        return f"({self.expression(depth)})"

    def negated(self, depth: int) -> str:
        return f"not {self.expression(depth)}"

    def signed(self, depth: int) -> str:
        return f"{self.one('-+')}{self.tight(depth)}"

    def tight(self, depth: int) -> str:
        """What a filter, a member or a test can be put behind; now and then without the parentheses it would need."""
        if self.often(0.5) or depth <= 0:
            return self.atom()
        text = self.expression(depth)
        return text if re.fullmatch(r"[\w.]+", text) or self.often(0.15) else f"({text})"

    def condition(self, depth: int = DEPTH) -> str:
        """An expression as it stands behind `if`: mostly one that holds or not, seldom an error."""
        if self.often(0.3):
            return f"{self.name()} is {self.one(('defined', 'string', 'none', 'mapping', 'iterable'))}"
        return self.expression(depth - 1)

    # -- statements --------------------------------------------------------------------------------------------------

    def snippet(self) -> str:
        """A small program: an expression, printed or shown as JSON, or some statements."""
        if self.often(0.6):
            return self.printed(self.expression())
        return self.block(depth=2, size=3)

    def printed(self, expression: str) -> str:
        """An expression's value as text; in JSON form half the time, which hides nothing."""
        if self.often(0.3):
            expression = f"({expression})|tojson"
        # An object literal that ends here must not make `}}}`.
        blank = " " if expression.endswith("}") or self.often(0.9) else ""
        return f"{self.one(words.PRINT_OPENINGS)} {expression}{blank}{self.one(words.PRINT_CLOSINGS)}"

    def tag(self, inside: str) -> str:
        """A statement's tag, with any whitespace control."""
        opening = self.one(words.OPENINGS) if self.often(0.4) else "{%"
        closing = self.one(words.CLOSINGS) if self.often(0.4) else "%}"
        return f"{opening} {inside} {closing}"

    def block(self, depth: int, size: int) -> str:
        """Up to `size` statements, nested at most `depth` deep."""
        return "".join(self.statement(depth) for _ in range(self.random.randint(1, size)))

    def statement(self, depth: int) -> str:
        if depth <= 0 or self.often(0.45):
            return self.one(words.TEXTS) if self.often(0.4) else self.printed(self.expression(2))
        rules: Sequence[tuple[int, Rule]] = (
            (8, lambda _: self.set_name()),
            (7, self.loop),
            (6, self.branch),
            (3, self.macro),
            (3, self.namespace),
            (2, self.set_block),
            (2, self.filter_block),
            (2, self.call_block),
            (1, lambda _: self.comment()),
            (1, lambda _: self.change()),
        )
        return self.by(rules)(depth - 1)

    def set_name(self) -> str:
        value = self.expression(2)
        if self.often(0.1):
            return self.tag(f"set {self.bind()}, {self.bind()} = {value}")
        return self.tag(f"set {self.bind()} = {value}")

    def set_block(self, depth: int) -> str:
        body = self.block(depth, 2)
        return self.tag(f"set {self.bind()}") + body + self.tag("endset")

    def namespace(self, depth: int) -> str:
        name = self.one(("ns", "state"))
        made = self.tag(f"set {name} = namespace(n={self.expression(1)}, found=false)")
        changed = self.tag(f"set {name}.{self.one(('n', 'found', 'other'))} = {self.expression(2)}")
        self.bound += [f"{name}.n", f"{name}.found"]
        return made + self.inside_loop(changed, depth) + self.printed(f"{name}.n")

    def inside_loop(self, body: str, depth: int) -> str:
        if self.often(0.5):
            return body
        return self.tag("for i in items") + body + self.block(depth, 1) + self.tag("endfor")

    def loop(self, depth: int) -> str:
        iterable = self.one(("items", "words", "records", "messages", "record", "range(3)", "pairs", "record.items()"))
        if self.often(0.2):
            iterable = self.expression(2)
        target = self.bind() if self.often(0.8) else f"{self.bind()}, {self.bind()}"
        selected = f" if {self.condition(2)}" if self.often(0.2) else ""
        before = self.bound
        self.bound = [*before, *words.LOOP]
        body = self.block(depth, 3)
        if self.often(0.2):
            body += self.tag(f"if {self.condition(2)}") + "q" + self.tag(self.one(("break", "continue")))
            body += self.tag("endif") + self.block(depth, 1)
        self.bound = before
        otherwise = self.tag("else") + self.block(depth, 1) if self.often(0.2) else ""
        return self.tag(f"for {target} in {iterable}{selected}") + body + otherwise + self.tag("endfor")

    def branch(self, depth: int) -> str:
        text = self.tag(f"if {self.condition()}") + self.block(depth, 2)
        if self.often(0.3):
            text += self.tag(f"elif {self.condition()}") + self.block(depth, 2)
        if self.often(0.4):
            text += self.tag("else") + self.block(depth, 2)
        return text + self.tag("endif")

    def macro(self, depth: int) -> str:
        # A name of its own for each, and the calls outside the body: none can come to call itself.
        text, name, parameters = self.new_macro(depth)
        calls = [self.printed(f"{name}({self.call_arguments(parameters)})") for _ in range(self.random.randint(1, 2))]
        return text + self.block(depth, 1) + "".join(calls)

    def new_macro(self, depth: int, *, extra: str = "") -> tuple[str, str, list[str]]:
        """A new macro's text, name and parameters; `extra` stands at the end of its body."""
        self.macros += 1
        name = f"m{self.macros}"
        parameters = list(words.OWN_NAMES[: self.random.randrange(4)])
        shown = [p + (f"={self.expression(1)}" if self.often(0.4) else "") for p in parameters]
        before, self.bound = self.bound, [*self.bound, *parameters]
        body = self.block(depth, 2) + extra
        self.bound = before
        return self.tag(f"macro {name}({', '.join(shown)})") + body + self.tag("endmacro"), name, parameters

    def call_arguments(self, parameters: Sequence[str]) -> str:
        count = max(0, len(parameters) + self.random.choice((0, 0, 0, -1, 1)))
        given = [self.expression(1) for _ in range(count)]
        named = [f"{p}={value}" if self.often(0.25) else value for p, value in zip(parameters, given, strict=False)]
        return ", ".join(named + given[len(named) :])

    def call_block(self, depth: int) -> str:
        passed = self.expression(1) if self.often(0.5) else ""
        caller = self.printed(f"caller({passed})")
        text, name, parameters = self.new_macro(depth, extra=caller)
        signature = f"({self.bind()})" if passed else ""
        opening = self.tag(f"call{signature} {name}({self.call_arguments(parameters)})")
        return text + opening + self.block(depth, 2) + self.tag("endcall")

    def filter_block(self, depth: int) -> str:
        name = self.one(("upper", "trim", "title", "replace('a', 'b')", "indent(2)", "length", "nosuch", "join('-')"))
        return self.tag(f"filter {name}") + self.block(depth, 2) + self.tag("endfilter")

    def comment(self) -> str:
        return self.one(("{# c #}", "{#- c -#}", "{#c\n-#}", "\n{# {{ x }} #}\n"))

    def change(self) -> str:
        """A list changed in place, before and after it is printed."""
        name = self.bind()
        values = f"[{self.expression(1)}, {self.expression(1)}]"
        return (
            self.tag(f"set {name} = {values}")
            + self.printed(name)
            + self.tag(f"set _ = {name}.{self.one(('append(1)', 'pop()', 'pop(0)', 'append(items)'))}")
            + self.printed(name)
        )
