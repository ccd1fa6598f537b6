"""The syntax tree (`dialect.md` section 3).

Every node knows the byte offset that llama.cpp reports for it (section 9). `TYPE` is the name it has in error messages.
Nodes are not frozen: thousands are made for every template, and freezing triples the cost of making one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias


@dataclass(slots=True, eq=False)
class Node:
    """Anything in the tree."""

    TYPE: ClassVar[str] = "Node"
    offset: int


@dataclass(slots=True, eq=False)
class NameNode(Node):
    TYPE: ClassVar[str] = "Identifier"
    name: str


@dataclass(slots=True, eq=False)
class IntegerLiteral(Node):
    TYPE: ClassVar[str] = "IntegerLiteral"
    value: int


@dataclass(slots=True, eq=False)
class FloatLiteral(Node):
    TYPE: ClassVar[str] = "FloatLiteral"
    value: float


@dataclass(slots=True, eq=False)
class StringLiteral(Node):
    TYPE: ClassVar[str] = "StringLiteral"
    value: bytes


@dataclass(slots=True, eq=False)
class ArrayLiteral(Node):
    TYPE: ClassVar[str] = "ArrayLiteral"
    items: list[Expression]


@dataclass(slots=True, eq=False)
class TupleLiteral(Node):
    TYPE: ClassVar[str] = "TupleLiteral"
    items: list[Expression]


@dataclass(slots=True, eq=False)
class ObjectLiteral(Node):
    TYPE: ClassVar[str] = "ObjectLiteral"
    entries: list[tuple[Expression, Expression]]


@dataclass(slots=True, eq=False)
class Member(Node):
    """`left.key`, `left[key]` (computed). `key` is None for `left[]`; `place` is where the key itself stands."""

    TYPE: ClassVar[str] = "MemberExpression"
    left: Expression
    key: Expression | None
    computed: bool
    place: int


@dataclass(slots=True, eq=False)
class Slice(Node):
    """The inside of `left[a:b:c]`; a part that is not there is None."""

    TYPE: ClassVar[str] = "SliceExpression"
    parts: list[Expression | None]


@dataclass(slots=True, eq=False)
class Call(Node):
    TYPE: ClassVar[str] = "CallExpression"
    callee: Expression
    arguments: list[Expression]


@dataclass(slots=True, eq=False)
class Keyword(Node):
    TYPE: ClassVar[str] = "KeywordArgumentExpression"
    key: Expression
    value: Expression


@dataclass(slots=True, eq=False)
class Spread(Node):
    TYPE: ClassVar[str] = "SpreadExpression"
    value: Expression


@dataclass(slots=True, eq=False)
class Filter(Node):
    """`operand|filter`: `filter` is a name, a call of a name, or something that fails when run."""

    TYPE: ClassVar[str] = "FilterExpression"
    operand: Expression
    filter: Expression


@dataclass(slots=True, eq=False)
class Test(Node):
    TYPE: ClassVar[str] = "TestExpression"
    operand: Expression
    negated: bool
    test: Expression


@dataclass(slots=True, eq=False)
class Unary(Node):
    """`not x`, `-x`, `+x`."""

    TYPE: ClassVar[str] = "UnaryExpression"
    operator: str
    operand: Expression


@dataclass(slots=True, eq=False)
class Binary(Node):
    TYPE: ClassVar[str] = "BinaryExpression"
    operator: str
    left: Expression
    right: Expression


@dataclass(slots=True, eq=False)
class Ternary(Node):
    TYPE: ClassVar[str] = "Ternary"
    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(slots=True, eq=False)
class Select(Node):
    """`value if condition` without an `else`; right behind the `in` of a `for` it filters the items."""

    TYPE: ClassVar[str] = "SelectExpression"
    value: Expression
    condition: Expression


@dataclass(slots=True, eq=False)
class Text(Node):
    """Text outside of tags."""

    TYPE: ClassVar[str] = "StringLiteral"
    value: bytes


@dataclass(slots=True, eq=False)
class Tag(Node):
    """A statement in a tag. `end` is where its tag closes, the first of them where a body follows."""

    end: int


@dataclass(slots=True, eq=False)
class Print(Tag):
    """`{{ value }}`"""

    value: Expression


@dataclass(slots=True, eq=False)
class Noop(Node):
    """A comment, `{% generation %}`, `{% endgeneration %}`."""

    TYPE: ClassVar[str] = "Noop"


@dataclass(slots=True, eq=False)
class If(Tag):
    TYPE: ClassVar[str] = "If"
    condition: Expression
    body: list[Statement]
    otherwise: list[Statement]


@dataclass(slots=True, eq=False)
class For(Tag):
    """`target` is one expression or a tuple of them; `body` runs for each item, `otherwise` when no round ended."""

    TYPE: ClassVar[str] = "For"
    target: Expression
    iterable: Expression
    body: list[Statement]
    otherwise: list[Statement]


@dataclass(slots=True, eq=False)
class Set(Tag):
    """`{% set target = value %}`, or a block (`value` None) up to `endset`."""

    TYPE: ClassVar[str] = "Set"
    target: Expression
    value: Expression | None
    body: list[Statement]


@dataclass(slots=True, eq=False)
class Macro(Tag):
    TYPE: ClassVar[str] = "Macro"
    name: Expression
    parameters: list[Expression]
    body: list[Statement]


@dataclass(slots=True, eq=False)
class CallBlock(Tag):
    """`{% call(parameters) callee(arguments) %}body{% endcall %}`"""

    TYPE: ClassVar[str] = "CallStatement"
    call: Call
    parameters: list[Expression]
    body: list[Statement]


@dataclass(slots=True, eq=False)
class FilterBlock(Tag):
    TYPE: ClassVar[str] = "FilterStatement"
    filter: Expression
    body: list[Statement]


@dataclass(slots=True, eq=False)
class Break(Tag):
    TYPE: ClassVar[str] = "Break"


@dataclass(slots=True, eq=False)
class Continue(Tag):
    TYPE: ClassVar[str] = "Continue"


Expression: TypeAlias = (
    NameNode
    | IntegerLiteral
    | FloatLiteral
    | StringLiteral
    | ArrayLiteral
    | TupleLiteral
    | ObjectLiteral
    | Member
    | Slice
    | Call
    | Keyword
    | Spread
    | Filter
    | Test
    | Unary
    | Binary
    | Ternary
    | Select
)
Statement: TypeAlias = Text | Print | Noop | If | For | Set | Macro | CallBlock | FilterBlock | Break | Continue
