"""Tokens → syntax tree (`dialect.md` section 3). One method for each rule of the grammar."""

from __future__ import annotations

from collections.abc import Callable

from scanner.dialect import nodes
from scanner.dialect.errors import SyntaxFault, SyntaxKind
from scanner.dialect.limits import Limits
from scanner.dialect.tokens import Kind, Token

BINARY_PRECEDENCE = {
    b"or": 1,
    b"and": 2,
    b"in": 4,
    b"not": 4,
    b"==": 4,
    b"!=": 4,
    b"<": 4,
    b">": 4,
    b"<=": 4,
    b">=": 4,
    b"+": 5,
    b"-": 5,
    b"~": 5,
    b"*": 6,
    b"/": 6,
    b"%": 6,
}
"""Loosest first; `not x` stands between `and` and the comparisons."""
OR, NOT = 1, 3

OPERATOR_KINDS = frozenset({Kind.NAME, Kind.COMPARISON, Kind.ADDITIVE, Kind.MULTIPLICATIVE})
STARTS_TEST_ARGUMENT = frozenset({Kind.NUMBER, Kind.STRING, Kind.LEFT_BRACE, Kind.LEFT_BRACKET})
NOT_A_TEST_ARGUMENT = frozenset({b"and", b"or", b"else"})
INT64 = range(-(2**63), 2**63)


def parse(tokens: list[Token], limits: Limits) -> list[nodes.Statement]:
    """The statements of a template. Raises `SyntaxFault` (kind `parser`, or `limit` for nesting)."""
    return Parser(tokens, limits).template()


class Parser:
    """A token stream and the rules that read from it."""

    def __init__(self, tokens: list[Token], limits: Limits) -> None:
        self.tokens = [*tokens, Token(Kind.END, b"", 0)]
        self.position = 0
        self.current = self.tokens[0]
        self.depth = 0
        self.limits = limits

    # -- the token stream ------------------------------------------------------------------------------------------

    def advance(self) -> Token:
        """The current token; the stream moves on (never past the end token)."""
        token = self.current
        if token.kind != Kind.END:
            self.position += 1
            self.current = self.tokens[self.position]
        return token

    def skip_if(self, kind: int) -> bool:
        """Whether the current token is of this kind; if so it is passed."""
        if self.current.kind == kind:
            self.advance()
            return True
        return False

    def skip_name(self, name: bytes) -> bool:
        """Whether the current token is this name; if so it is passed."""
        if self.at_name(name):
            self.advance()
            return True
        return False

    def at_name(self, name: bytes) -> bool:
        """Whether the current token is this name."""
        return self.current.kind == Kind.NAME and self.current.text == name

    def expect(self, kind: int, shown: str) -> Token:
        """The current token, which must be of this kind (`shown` in the message)."""
        if self.current.kind != kind:
            got = self.current.text.decode("utf-8", "replace")
            message = f"parser: Parser Error: Expected {shown} (Got {got})"
            raise SyntaxFault(SyntaxKind.PARSER, message, self.current.offset, excerpt=True)
        return self.advance()

    def fail(self, message: str) -> SyntaxFault:
        """A parser error at the current token."""
        return SyntaxFault(SyntaxKind.PARSER, message, self.current.offset)

    def nest(self) -> None:
        """Go one level deeper; the caller goes back up with `self.depth -= 1`."""
        self.depth += 1
        self.check_depth(self.depth)

    def check_depth(self, depth: int) -> None:
        """Refuse what nests deeper, or chains longer, than the budget."""
        if depth > self.limits.parse_depth:
            message = f"nested deeper than {self.limits.parse_depth} levels"
            raise SyntaxFault(SyntaxKind.LIMIT, message, self.current.offset)

    # -- statements ------------------------------------------------------------------------------------------------

    def template(self) -> list[nodes.Statement]:
        statements: list[nodes.Statement] = []
        while self.current.kind != Kind.END:
            statements.append(self.statement())
        return statements

    def statement(self) -> nodes.Statement:
        kind = self.current.kind
        if kind == Kind.TEXT:
            token = self.advance()
            return nodes.Text(token.offset, token.text)
        if kind == Kind.OPEN_EXPRESSION:
            offset = self.advance().offset
            value = self.expression()
            end = self.expect(Kind.CLOSE_EXPRESSION, "}}").offset
            return nodes.Print(offset, end, value)
        if kind == Kind.OPEN_STATEMENT:
            self.advance()
            return self.block()
        if kind == Kind.COMMENT:
            return nodes.Noop(self.advance().offset)
        raise self.fail("Unexpected token type")

    def block(self) -> nodes.Statement:
        """What stands behind `{%`."""
        if self.current.kind != Kind.NAME:
            raise self.fail("Unknown statement")
        rule = self.BLOCKS.get(self.current.text)
        if rule is None:
            raise self.fail(f"Unknown statement: {self.current.text.decode('ascii')}")
        self.nest()
        statement = rule(self, self.advance().offset)
        self.depth -= 1
        return statement

    def close_tag(self) -> int:
        """Pass `%}`; gives its offset."""
        return self.expect(Kind.CLOSE_STATEMENT, "%}").offset

    def body(self, *ends: bytes) -> list[nodes.Statement]:
        """Statements up to `{% END`, for one of the names `ends`, which is left as the current token."""
        statements: list[nodes.Statement] = []
        while not self.at_block(ends):
            statements.append(self.statement())
        self.advance()
        return statements

    def at_block(self, names: tuple[bytes, ...]) -> bool:
        if self.current.kind != Kind.OPEN_STATEMENT:
            return False
        following = self.tokens[self.position + 1]
        return following.kind == Kind.NAME and following.text in names

    def end_block(self) -> None:
        """Pass `endNAME %}`."""
        self.advance()
        self.close_tag()

    def if_block(self, offset: int) -> nodes.Statement:
        condition = self.expression()
        end = self.close_tag()
        body = self.body(b"elif", b"else", b"endif")
        otherwise: list[nodes.Statement] = []
        if self.at_name(b"elif"):
            self.nest()
            opening = self.tokens[self.position - 1].offset
            self.advance()
            otherwise = [self.if_block(opening)]
            self.depth -= 1
            return nodes.If(offset, end, condition, body, otherwise)
        if self.skip_name(b"else"):
            self.close_tag()
            otherwise = self.body(b"endif")
        self.end_block()
        return nodes.If(offset, end, condition, body, otherwise)

    def for_block(self, offset: int) -> nodes.Statement:
        target = self.sequence(self.primary)
        if not self.skip_name(b"in"):
            raise self.fail("Expected 'in'")
        iterable = self.expression()
        end = self.close_tag()
        body = self.body(b"endfor", b"else")
        otherwise: list[nodes.Statement] = []
        if self.skip_name(b"else"):
            self.close_tag()
            otherwise = self.body(b"endfor")
        self.end_block()
        return nodes.For(offset, end, target, iterable, body, otherwise)

    def set_block(self, offset: int) -> nodes.Statement:
        target = self.sequence(self.expression)
        if self.skip_if(Kind.ASSIGN):
            value = self.sequence(self.expression)
            return nodes.Set(offset, self.close_tag(), target, value, [])
        end = self.close_tag()
        body = self.body(b"endset")
        self.end_block()
        return nodes.Set(offset, end, target, None, body)

    def macro_block(self, offset: int) -> nodes.Statement:
        name = self.primary()
        parameters = self.arguments()
        end = self.close_tag()
        body = self.body(b"endmacro")
        self.end_block()
        return nodes.Macro(offset, end, name, parameters, body)

    def call_block(self, offset: int) -> nodes.Statement:
        parameters = self.arguments() if self.current.kind == Kind.LEFT_PAREN else []
        callee = self.primary()
        if not isinstance(callee, nodes.NameNode):
            raise self.fail("Expected identifier")
        place = self.current.offset
        call = nodes.Call(place, callee, self.arguments())
        end = self.close_tag()
        body = self.body(b"endcall")
        self.end_block()
        return nodes.CallBlock(offset, end, call, parameters, body)

    def filter_block(self, offset: int) -> nodes.Statement:
        filter_node = self.primary()
        if isinstance(filter_node, nodes.NameNode) and self.current.kind == Kind.LEFT_PAREN:
            filter_node = self.postfix(filter_node)
        end = self.close_tag()
        body = self.body(b"endfilter")
        self.end_block()
        return nodes.FilterBlock(offset, end, filter_node, body)

    def break_block(self, offset: int) -> nodes.Statement:
        return nodes.Break(offset, self.close_tag())

    def continue_block(self, offset: int) -> nodes.Statement:
        return nodes.Continue(offset, self.close_tag())

    def generation_block(self, offset: int) -> nodes.Statement:
        self.close_tag()
        return nodes.Noop(offset)

    BLOCKS: dict[bytes, Callable[[Parser, int], nodes.Statement]] = {  # noqa: RUF012 - a table, never changed
        b"if": if_block,
        b"for": for_block,
        b"set": set_block,
        b"macro": macro_block,
        b"call": call_block,
        b"filter": filter_block,
        b"break": break_block,
        b"continue": continue_block,
        b"generation": generation_block,
        b"endgeneration": generation_block,
    }

    # -- expressions -----------------------------------------------------------------------------------------------

    def sequence(self, rule: Callable[[], nodes.Expression]) -> nodes.Expression:
        """One expression, or a tuple of several with commas between."""
        offset = self.current.offset
        first = rule()
        if self.current.kind != Kind.COMMA:
            return first
        items = [first]
        while self.skip_if(Kind.COMMA):
            items.append(rule())
        return nodes.TupleLiteral(offset, items)

    def expression(self) -> nodes.Expression:
        """A ternary, or what binds tighter."""
        self.nest()
        value = self.binary(OR)
        if self.at_name(b"if"):
            offset = self.advance().offset
            condition = self.binary(OR)
            place = self.current.offset
            if self.skip_name(b"else"):
                value = nodes.Ternary(place, condition, value, self.expression())
            else:
                value = nodes.Select(offset, value, condition)
        self.depth -= 1
        return value

    def binary(self, loosest: int) -> nodes.Expression:
        """Operators that bind at least as tightly as `loosest`, left-associative."""
        left = self.negation() if loosest <= NOT and self.at_name(b"not") else self.test()
        chain = self.depth
        while self.current.kind in OPERATOR_KINDS:
            precedence = BINARY_PRECEDENCE.get(self.current.text)
            if precedence is None or precedence < loosest:
                break
            operator = self.operator()
            if operator is None:
                break
            chain += 1
            self.check_depth(chain)
            right = self.binary(precedence + 1)
            left = nodes.Binary(operator.offset, operator.text.decode("ascii"), left, right)
        return left

    def operator(self) -> Token | None:
        """The binary operator at the current token; None for a `not` that no `in` follows."""
        token = self.current
        if token.text != b"not":
            return self.advance()
        following = self.tokens[self.position + 1]
        if following.kind != Kind.NAME or following.text != b"in":
            return None
        self.advance()
        self.advance()
        return token._replace(text=b"not in")

    def negation(self) -> nodes.Expression:
        self.nest()
        offset = self.advance().offset
        operand = self.binary(NOT)
        self.depth -= 1
        return nodes.Unary(offset, "not", operand)

    def test(self) -> nodes.Expression:
        operand = self.filtered()
        chain = self.depth
        while self.at_name(b"is"):
            chain += 1
            self.check_depth(chain)
            offset = self.advance().offset
            negated = self.skip_name(b"not")
            test = self.primary()
            place = self.current.offset
            if self.current.kind == Kind.LEFT_PAREN:
                test = self.postfix(test)
            elif self.at_test_argument():
                test = nodes.Call(place, test, [self.unary()])
            operand = nodes.Test(offset, operand, negated, test)
        return operand

    def at_test_argument(self) -> bool:
        if self.current.kind == Kind.NAME:
            return self.current.text not in NOT_A_TEST_ARGUMENT
        return self.current.kind in STARTS_TEST_ARGUMENT

    def filtered(self) -> nodes.Expression:
        operand = self.unary()
        chain = self.depth
        while self.current.kind == Kind.PIPE:
            chain += 1
            self.check_depth(chain)
            offset = self.advance().offset
            operand = nodes.Filter(offset, operand, self.filter_name())
        return operand

    def filter_name(self) -> nodes.Expression:
        """A filter with its argument list, if any; what follows such a list parses, and fails when run."""
        name = self.primary()
        return self.postfix(name) if self.current.kind == Kind.LEFT_PAREN else name

    def unary(self) -> nodes.Expression:
        if self.current.kind != Kind.UNARY:
            return self.postfix(self.primary())
        self.nest()
        sign = self.advance()
        operand = self.unary()
        self.depth -= 1
        return nodes.Unary(sign.offset, sign.text.decode("ascii"), operand)

    def postfix(self, value: nodes.Expression) -> nodes.Expression:
        """Members and calls. Members in a row share the place of the first; a call starts a new row."""
        row: int | None = None
        chain = self.depth
        while True:
            kind = self.current.kind
            if kind == Kind.DOT or kind == Kind.LEFT_BRACKET:
                row = self.current.offset if row is None else row
                value = self.dotted(value, row) if kind == Kind.DOT else self.subscript(value, row)
            elif kind == Kind.LEFT_PAREN:
                row = None
                value = nodes.Call(self.current.offset, value, self.arguments())
            else:
                return value
            chain += 1
            self.check_depth(chain)

    def dotted(self, left: nodes.Expression, row: int) -> nodes.Expression:
        self.advance()
        place = self.current.offset
        return nodes.Member(row, left, self.primary(), computed=False, place=place)

    def subscript(self, left: nodes.Expression, row: int) -> nodes.Expression:
        """`left[…]`. Expressions may stand side by side, as parts of a slice; without a colon the first counts."""
        self.advance()
        place = self.current.offset
        parts: list[nodes.Expression | None] = []
        sliced = False
        pending = False
        while not self.skip_if(Kind.RIGHT_BRACKET):
            if self.skip_if(Kind.COLON):
                sliced = True
                if not pending:
                    parts.append(None)
                pending = False
            else:
                parts.append(self.expression())
                pending = True
        if sliced:
            return nodes.Member(row, left, nodes.Slice(place, parts), computed=True, place=place)
        return nodes.Member(row, left, parts[0] if parts else None, computed=True, place=place)

    def arguments(self) -> list[nodes.Expression]:
        """`(…)`: commas may be missing, `name = value` is a keyword argument, `*value` fails when run."""
        self.expect(Kind.LEFT_PAREN, "(")
        items: list[nodes.Expression] = []
        while not self.skip_if(Kind.RIGHT_PAREN):
            items.append(self.argument())
            self.skip_if(Kind.COMMA)
        return items

    def argument(self) -> nodes.Expression:
        token = self.current
        if token.kind == Kind.MULTIPLICATIVE and token.text == b"*":
            self.advance()
            return nodes.Spread(token.offset, self.expression())
        value = self.expression()
        if self.current.kind != Kind.ASSIGN:
            return value
        return nodes.Keyword(self.advance().offset, value, self.expression())

    def primary(self) -> nodes.Expression:
        token = self.current
        kind = token.kind
        if kind == Kind.NAME:
            self.advance()
            return nodes.NameNode(token.offset, token.text.decode("ascii"))
        if kind == Kind.STRING:
            return self.string()
        if kind == Kind.NUMBER:
            self.advance()
            return self.number(token)
        if kind == Kind.LEFT_PAREN:
            self.advance()
            value = self.sequence(self.expression)
            self.expect(Kind.RIGHT_PAREN, ")")
            return value
        if kind == Kind.LEFT_BRACKET:
            return self.array()
        if kind == Kind.LEFT_BRACE:
            return self.object()
        raise self.unexpected()

    def unexpected(self) -> SyntaxFault:
        """What to raise where no expression can start, or go on. At the end, llama.cpp points at the last token."""
        if self.current.kind == Kind.END:
            last = self.tokens[self.position - 1]
            return SyntaxFault(SyntaxKind.PARSER, "parser: Parser Error: Unexpected EOF", last.offset, excerpt=True)
        text = self.current.text.decode("utf-8", "replace")
        return self.fail(f"Unexpected token: {text} of type {self.current.kind}")

    def string(self) -> nodes.Expression:
        """One string, or several in a row joined."""
        token = self.advance()
        value = token.text
        while self.current.kind == Kind.STRING:
            value += self.advance().text
        return nodes.StringLiteral(token.offset, value)

    def number(self, token: Token) -> nodes.Expression:
        if b"." in token.text:
            return nodes.FloatLiteral(token.offset, float(token.text))
        # A number of a hundred digits cannot fit; Python is not asked to build it.
        value = int(token.text) if len(token.text) < 100 else INT64.stop
        if value not in INT64:
            raise SyntaxFault(SyntaxKind.PARSER, "stoll", token.offset)
        return nodes.IntegerLiteral(token.offset, value)

    def array(self) -> nodes.Expression:
        offset = self.advance().offset
        items: list[nodes.Expression] = []
        while not self.skip_if(Kind.RIGHT_BRACKET):
            items.append(self.expression())
            self.skip_if(Kind.COMMA)
        return nodes.ArrayLiteral(offset, items)

    def object(self) -> nodes.Expression:
        offset = self.advance().offset
        entries: list[tuple[nodes.Expression, nodes.Expression]] = []
        while not self.skip_if(Kind.RIGHT_BRACE):
            key = self.expression()
            self.expect(Kind.COLON, ":")
            entries.append((key, self.expression()))
            self.skip_if(Kind.COMMA)
        return nodes.ObjectLiteral(offset, entries)
