"""The syntax tree → something that runs (`dialect.md` section 5).

Each node is compiled once to a Python closure; a template's probes all run the same closures. A statement's closure
prints to `run.out`, an expression's gives a value. The `node` and `offset` of an error are those of the innermost
closure that sees it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from scanner.dialect import nodes, operators
from scanner.dialect.builtins import GLOBALS, TESTS, find_method, slice_of
from scanner.dialect.builtins.arguments import as_integer
from scanner.dialect.context import Run, Scope
from scanner.dialect.coverage import body_key
from scanner.dialect.errors import BreakSignal, ContinueSignal, LoopControl, RunFault
from scanner.dialect.values import (
    FALSE,
    TRUE,
    Array,
    Boolean,
    Builtin,
    Float,
    Function,
    Integer,
    KeywordArgument,
    Loop,
    Null,
    Object,
    String,
    Tuple,
    Undefined,
    Value,
    from_key,
    string,
)
from scanner.dialect.walks import equal, is_fixed, key_of, text_of

Evaluate: TypeAlias = Callable[[Scope, Run], Value]
Execute: TypeAlias = Callable[[Scope, Run], None]
Bind: TypeAlias = Callable[[Scope, Run, Value], None]

ALIASES = {"count": "length", "d": "default", "e": "escape", "trim": "strip"}
"""Other names of filters; in filter position only."""
TAKES_TEXT = frozenset({"capitalize", "lower", "replace", "strip", "title", "upper", "wordcount"})
"""Filters that, without an argument list, turn their operand into a string first."""
PAIR_STEPS = 4
"""Steps for a key and value put into a tuple."""
UNPLACED = -1
"""The offset of an expression that llama.cpp does not name in errors."""
NOT_FOUND = "object_property"
"""The hint of a member that is not there and has no name to give."""


# -- bodies ------------------------------------------------------------------------------------------------------------


def compile_body(statements: list[nodes.Statement]) -> Execute:
    """Statements that print straight to where they stand: the template itself, and the body of a `for`.

    How far it came is noted at its end, not on the way: a `try` costs nothing unless something leaves it.
    """
    code = [STATEMENTS[type(statement)](statement) for statement in statements]
    count = len(code)
    cost = count + 1
    key = body_key(statements)

    def run_body(scope: Scope, run: Run) -> None:
        run.steps -= cost
        if run.steps < 0:
            run.charge(0)
        try:
            for execute in code:
                execute(scope, run)
        except Exception:
            run.reached[key] = max(run.reached.get(key, 0), code.index(execute) + 1)
            raise
        run.reached[key] = count

    return run_body


def compile_nested(statements: list[nodes.Statement]) -> Execute:
    """A body that becomes text when it ends, and whose text is lost when it is left early."""
    body = compile_body(statements)

    def run_nested(scope: Scope, run: Run) -> None:
        start = len(run.out)
        try:
            body(scope, run)
        except LoopControl:
            run.drop(start)
            raise
        if run.unsettled:
            run.settle(start)

    return run_nested


def compile_captured(statements: list[nodes.Statement]) -> Evaluate:
    """A body whose text is a value: of a macro, a block `set`, `call` or `filter`."""
    body = compile_body(statements)

    def capture(scope: Scope, run: Run) -> Value:
        outside, unsettled = run.out, run.unsettled
        run.out, run.unsettled = [], 0
        try:
            body(scope, run)
            return run.collect()
        finally:
            run.out, run.unsettled = outside, unsettled

    return capture


# -- statements --------------------------------------------------------------------------------------------------------


def text(node: nodes.Text) -> Execute:
    piece = (node.value, False)

    def execute(scope: Scope, run: Run) -> None:
        run.out.append(piece)

    return execute


def print_value(node: nodes.Print) -> Execute:
    evaluate = compile_operand(node.value)

    def execute(scope: Scope, run: Run) -> None:
        value = evaluate(scope, run)
        if value.__class__ is String:
            run.out.extend(value.parts)
        else:
            run.print(value)

    return execute


def noop(node: nodes.Noop) -> Execute:
    def execute(scope: Scope, run: Run) -> None:
        pass

    return execute


def if_statement(node: nodes.If) -> Execute:
    condition = compile_expression(node.condition)
    body = compile_nested(node.body)
    otherwise = compile_nested(node.otherwise) if node.otherwise else None
    offset = node.offset

    def execute(scope: Scope, run: Run) -> None:
        try:
            holds = condition(scope, run).truth()
        except RunFault as fault:
            fault.at("If", offset)
            raise
        if holds:
            body(scope, run)
        elif otherwise is not None:
            otherwise(scope, run)

    return execute


def for_statement(node: nodes.For) -> Execute:
    source: nodes.Expression = node.iterable
    condition: Evaluate | None = None
    if isinstance(source, nodes.Select):
        condition = compile_expression(source.condition)
        source = source.value
    iterable = compile_expression(source)
    bind = compile_loop_target(node.target)
    pairs = isinstance(node.target, nodes.TupleLiteral)
    body = compile_body(node.body)
    otherwise = compile_nested(node.otherwise) if node.otherwise else None
    offset, place = node.offset, source.offset

    def selected(items: list[Value], scope: Scope, run: Run) -> list[Value]:
        kept = []
        for item in items:
            inner = run.inner(scope)
            bind(inner, run, item)
            if condition is not None and condition(inner, run).truth():
                kept.append(item)
        return kept

    def rounds(items: list[Value], scope: Scope, run: Run) -> bool:
        """Whether any round ran to its end."""
        start = len(run.out)
        completed = False
        try:
            for index, item in enumerate(items):
                scope["loop"] = Loop(items, index)
                bind(scope, run, item)
                try:
                    body(scope, run)
                    completed = True
                except ContinueSignal:
                    continue
                except BreakSignal:
                    break
        except LoopControl:
            run.drop(start)
            raise
        if run.unsettled:
            run.settle(start)
        return completed

    def execute(scope: Scope, run: Run) -> None:
        try:
            items = loop_items(iterable(scope, run), run, place, pairs=pairs)
            run.charge_items(len(items))
            if condition is not None:
                items = selected(items, scope, run)
            completed = rounds(items, run.inner(scope), run)
            if not completed and otherwise is not None:
                otherwise(scope, run)
        except RunFault as fault:
            fault.at("For", offset)
            raise

    return execute


def loop_items(value: Value, run: Run, place: int, *, pairs: bool) -> list[Value]:
    """A snapshot of what a `for` runs over; an object gives its keys, or keys and values in pairs."""
    run.trace.add(value, "array_access", place)
    if isinstance(value, Array):
        return list(value.items)
    if isinstance(value, Object):
        run.trace.add(value, "object_access", place)
        run.charge_items(len(value.entries) * (PAIR_STEPS if pairs else 1))
        if not pairs:
            return [from_key(key) for key in value.entries]
        return [Tuple([from_key(key), item]) for key, item in value.entries.items()]
    if isinstance(value, Undefined):
        return []
    raise RunFault(f"Expected iterable or object type in for loop: got {value.TYPE}")


def compile_loop_target(target: nodes.Expression) -> Bind:
    """What a `for` does with each item."""
    if isinstance(target, nodes.NameNode):
        return assign_name(target.name)
    if isinstance(target, nodes.TupleLiteral):
        return unpack(target, where="", refusal="Cannot unpack non-identifier type: {}")
    return refuse_target(f"Invalid loop variable(s): {target.TYPE}")


def set_statement(node: nodes.Set) -> Execute:
    value = compile_captured(node.body) if node.value is None else compile_expression(node.value)
    assign = compile_target(node.target)
    offset = node.offset

    def execute(scope: Scope, run: Run) -> None:
        try:
            assign(scope, run, value(scope, run))
        except RunFault as fault:
            fault.at("Set", offset)
            raise

    return execute


def compile_target(target: nodes.Expression) -> Bind:
    """The left side of a `set`."""
    if isinstance(target, nodes.NameNode):
        return assign_name(target.name)
    if isinstance(target, nodes.TupleLiteral):
        return unpack(target, where=" in set", refusal="Cannot unpack to non-identifier in set: {}")
    if isinstance(target, nodes.Member):
        return assign_member(target)
    return refuse_target(f"Invalid LHS inside assignment expression: {target.TYPE}")


def refuse_target(message: str) -> Bind:
    def refuse(scope: Scope, run: Run, value: Value) -> None:
        raise RunFault(message)

    return refuse


def assign_name(name: str) -> Bind:
    def assign(scope: Scope, run: Run, value: Value) -> None:
        scope[name] = value

    return assign


def unpack(target: nodes.TupleLiteral, *, where: str, refusal: str) -> Bind:
    """Give each name of a tuple its item; `where` and `refusal` word the errors."""

    def assign(scope: Scope, run: Run, value: Value) -> None:
        if not isinstance(value, Array):
            raise RunFault(f"Cannot unpack non-iterable type{where}: {value.type_name}")
        if len(value.items) != len(target.items):
            count = "many" if len(value.items) > len(target.items) else "few"
            raise RunFault(f"Too {count} items to unpack{where}")
        for name, item in zip(target.items, value.items, strict=True):
            if not isinstance(name, nodes.NameNode):
                raise RunFault(refusal.format(name.TYPE))
            scope[name.name] = item

    return assign


def assign_member(target: nodes.Member) -> Bind:
    if target.computed:
        return refuse_target("Cannot assign to computed member")
    if not isinstance(target.key, nodes.NameNode):
        return refuse_target("Cannot assign to member with non-identifier property")
    left = compile_expression(target.left)
    key = target.key.name.encode()

    def assign(scope: Scope, run: Run, value: Value) -> None:
        owner = left(scope, run)
        if not isinstance(owner, Object):
            raise RunFault("Cannot assign to member of non-object")
        owner.entries[key] = value
        if len(owner.entries) > run.limits.sequence_items:
            run.charge_items(len(owner.entries))

    return assign


class MacroFunction(Function):
    """A macro, or the `caller` of a call block."""

    __slots__ = ("body", "parameters")

    def __init__(self, name: str, parameters: list[Parameter], body: Evaluate) -> None:
        super().__init__(name)
        self.parameters = parameters
        self.body = body

    def invoke(self, run: Run, scope: Scope, arguments: list[Value]) -> Value:
        """Run the body in a copy of the *caller's* variables: scope is dynamic."""
        run.enter_call()
        try:
            run.charge(len(self.parameters) * (1 + len(arguments) // 8))
            inner = run.inner(scope)
            for position, parameter in enumerate(self.parameters):
                inner[parameter.name] = self._argument(position, parameter, run, scope, arguments)
            return self.body(inner, run)
        finally:
            run.leave_call()

    def _argument(self, position: int, parameter: Parameter, run: Run, scope: Scope, arguments: list[Value]) -> Value:
        if parameter.misnamed:
            raise RunFault(f"Keyword argument key must be an identifier in '{self.name}'")
        if position >= len(arguments):
            if parameter.default is None:
                raise RunFault(f"Not enough arguments provided to '{self.name}'")
            return parameter.default(scope, run)
        if not parameter.name:
            raise RunFault(f"Invalid parameter type in '{self.name}'")
        for argument in arguments:
            if isinstance(argument, KeywordArgument) and argument.name == parameter.name:
                return argument.value
        given = arguments[position]
        return Undefined(parameter.name) if isinstance(given, KeywordArgument) else given


class CallerFunction(MacroFunction):
    """`caller`: its body sees the variables of where the call block stands."""

    __slots__ = ("home",)

    def __init__(self, parameters: list[Parameter], body: Evaluate, home: Scope) -> None:
        super().__init__("caller", parameters, body)
        self.home = home

    def invoke(self, run: Run, scope: Scope, arguments: list[Value]) -> Value:
        return super().invoke(run, self.home, arguments)


class Parameter:
    """A macro's parameter: its name (empty where the template has no name there), and its default if it has one;
    `misnamed` if it has a default and no name."""

    __slots__ = ("default", "misnamed", "name")

    def __init__(self, name: str, default: Evaluate | None = None, *, misnamed: bool = False) -> None:
        self.name = name
        self.default = default
        self.misnamed = misnamed


def compile_parameters(parameters: list[nodes.Expression]) -> list[Parameter]:
    """The parameters of a macro; one without a name is an error once its turn comes in a call."""
    compiled = []
    for parameter in parameters:
        if isinstance(parameter, nodes.NameNode):
            compiled.append(Parameter(parameter.name))
        elif isinstance(parameter, nodes.Keyword) and isinstance(parameter.key, nodes.NameNode):
            compiled.append(Parameter(parameter.key.name, compile_expression(parameter.value)))
        else:
            compiled.append(Parameter("", misnamed=isinstance(parameter, nodes.Keyword)))
    return compiled


def macro(node: nodes.Macro) -> Execute:
    name = node.name.name if isinstance(node.name, nodes.NameNode) else None
    parameters = compile_parameters(node.parameters)
    body = compile_captured(node.body)
    offset = node.offset

    def execute(scope: Scope, run: Run) -> None:
        if name is None:
            raise RunFault("Macro name must be an identifier").at("Macro", offset)
        scope[name] = MacroFunction(name, parameters, body)

    return execute


def call_block(node: nodes.CallBlock) -> Execute:
    callee = compile_expression(node.call.callee)
    arguments = [compile_expression(argument) for argument in node.call.arguments]
    parameters = compile_parameters(node.parameters)
    body = compile_captured(node.body)
    offset = node.offset

    def execute(scope: Scope, run: Run) -> None:
        try:
            given = [argument(scope, run) for argument in arguments]
            function = callee(scope, run)
            if not isinstance(function, Function):
                raise RunFault(f"Callee is not a function: got {function.type_name}")
            inner = run.inner(scope)
            inner["caller"] = CallerFunction(parameters, body, scope)
            run.charge(1)
            run.print(function.invoke(run, inner, given))
        except RunFault as fault:
            fault.at("CallStatement", offset)
            raise

    return execute


def filter_block(node: nodes.FilterBlock) -> Execute:
    apply = compile_filter(node.filter)
    body = compile_captured(node.body)
    offset = node.offset

    def execute(scope: Scope, run: Run) -> None:
        try:
            run.print(apply(scope, run, body))
        except RunFault as fault:
            fault.at("FilterStatement", offset)
            raise

    return execute


def break_statement(node: nodes.Break) -> Execute:
    def execute(scope: Scope, run: Run) -> None:
        raise BreakSignal

    return execute


def continue_statement(node: nodes.Continue) -> Execute:
    def execute(scope: Scope, run: Run) -> None:
        raise ContinueSignal

    return execute


STATEMENTS: dict[type[nodes.Node], Callable[..., Execute]] = {
    nodes.Text: text,
    nodes.Print: print_value,
    nodes.Noop: noop,
    nodes.If: if_statement,
    nodes.For: for_statement,
    nodes.Set: set_statement,
    nodes.Macro: macro,
    nodes.CallBlock: call_block,
    nodes.FilterBlock: filter_block,
    nodes.Break: break_statement,
    nodes.Continue: continue_statement,
}


# -- expressions -------------------------------------------------------------------------------------------------------


def compile_expression(node: nodes.Expression) -> Evaluate:
    """The closure of an expression."""
    return EXPRESSIONS[type(node)](node)


def compile_operand(node: nodes.Expression) -> Evaluate:
    """The closure of an expression whose value does not outlive the operation, so a literal can be made once."""
    if not isinstance(node, nodes.StringLiteral):
        return compile_expression(node)
    value = string(node.value)

    def evaluate(scope: Scope, run: Run) -> Value:
        return value

    return evaluate


def name(node: nodes.NameNode) -> Evaluate:
    wanted, offset = node.name, node.offset
    fallback = GLOBALS.get(wanted)

    def evaluate(scope: Scope, run: Run) -> Value:
        value = scope.get(wanted)
        if value is None or value.__class__ is Undefined:
            return Undefined(wanted) if fallback is None else fallback
        trace = run.trace
        identity = id(value)
        if identity in trace.given and identity not in trace.marks:
            trace.use(value, offset)
        return value

    return evaluate


def integer_literal(node: nodes.IntegerLiteral) -> Evaluate:
    value = node.value
    return lambda scope, run: Integer(value)


def float_literal(node: nodes.FloatLiteral) -> Evaluate:
    value = node.value
    return lambda scope, run: Float(value)


def string_literal(node: nodes.StringLiteral) -> Evaluate:
    literal = string(node.value)
    parts, size = literal.parts, literal.size
    return lambda scope, run: String(parts, size)


def array_literal(node: nodes.ArrayLiteral) -> Evaluate:
    items = [compile_expression(item) for item in node.items]
    return lambda scope, run: Array([item(scope, run) for item in items])


def tuple_literal(node: nodes.TupleLiteral) -> Evaluate:
    items = [compile_expression(item) for item in node.items]
    return lambda scope, run: Tuple([item(scope, run) for item in items])


def object_literal(node: nodes.ObjectLiteral) -> Evaluate:
    entries = [(compile_operand(key), compile_expression(value)) for key, value in node.entries]
    offset = node.offset

    def evaluate(scope: Scope, run: Run) -> Value:
        try:
            made = Object({})
            for key, value in entries:
                found = key(scope, run)
                item = value(scope, run)
                made.entries[key_of(run, found)] = item
            return made
        except RunFault as fault:
            fault.at("ObjectLiteral", offset)
            raise

    return evaluate


def member(node: nodes.Member) -> Evaluate:
    if isinstance(node.key, nodes.Slice):
        return slice_member(node, node.key)
    if node.computed and isinstance(node.key, nodes.StringLiteral):
        return literal_member(node, node.key.value)
    if node.computed or (isinstance(node.key, nodes.IntegerLiteral) and node.key.value >= 0):
        return computed_member(node)
    if isinstance(node.key, nodes.NameNode):
        return static_member(node, node.key.name)
    return refused_member(node)


def refused_member(node: nodes.Member) -> Evaluate:
    """`left.-1`, `left.1.5`: they parse, and fail when run."""
    left, offset = compile_operand(node.left), node.offset
    negative = isinstance(node.key, nodes.IntegerLiteral)
    message = "Static member property " + ("cannot be negative" if negative else "must be an identifier")

    def evaluate(scope: Scope, run: Run) -> Value:
        try:
            left(scope, run)
            raise RunFault(message)
        except RunFault as fault:
            fault.at("MemberExpression", offset)
            raise

    return evaluate


def static_member(node: nodes.Member, wanted: str) -> Evaluate:
    """`left.name`: a method first, then a key."""
    left, offset, place = compile_operand(node.left), node.offset, node.place
    key = wanted.encode()

    def evaluate(scope: Scope, run: Run) -> Value:
        try:
            owner = left(scope, run)
            trace = run.trace
            followed = id(owner) in trace.given
            if followed:
                trace.add(owner, wanted, place)
            method = find_method(owner, wanted)
            if method is not None:
                return Builtin(wanted, method, owner)
            if owner.__class__ is Undefined:
                return Undefined(NOT_FOUND)
            if followed:
                trace.add(owner, "object_access", place)
            if isinstance(owner, Object):
                found = owner.entries.get(key)
                if found is not None and found.__class__ is not Undefined:
                    if id(found) not in trace.marks:
                        trace.use(found, place)
                    return found
            return Undefined(wanted)
        except RunFault as fault:
            fault.at("MemberExpression", offset)
            raise

    return evaluate


def literal_member(node: nodes.Member, wanted: bytes) -> Evaluate:
    """`left['key']`, where the key is known beforehand: the commonest way to read a message."""
    left, offset, place = compile_operand(node.left), node.offset, node.place
    index = string(wanted)

    def evaluate(scope: Scope, run: Run) -> Value:
        try:
            owner = left(scope, run)
            if owner.__class__ is not Object:
                return Undefined(NOT_FOUND) if owner.__class__ is Undefined else look_up(run, owner, index, place)
            found = owner.entries.get(wanted)
            if found is None or found.__class__ is Undefined:
                return look_up(run, owner, index, place)
            trace = run.trace
            if id(owner) in trace.given:
                trace.add(owner, "object_access", place)
            if id(found) not in trace.marks:
                trace.use(found, place)
            return found
        except RunFault as fault:
            fault.at("MemberExpression", offset)
            raise

    return evaluate


def computed_member(node: nodes.Member) -> Evaluate:
    """`left[key]`."""
    left, offset, place = compile_operand(node.left), node.offset, node.place
    key = compile_operand(node.key) if node.key is not None else None

    def evaluate(scope: Scope, run: Run) -> Value:
        try:
            owner = left(scope, run)
            index = key(scope, run) if key is not None else Undefined()
            check_index(run, index)
            if owner.__class__ is Undefined or index.__class__ is Undefined:
                return Undefined(NOT_FOUND)
            return look_up(run, owner, index, place)
        except RunFault as fault:
            fault.at("MemberExpression", offset)
            raise

    return evaluate


def check_index(run: Run, index: Value) -> None:
    """Refuse what llama.cpp cannot hash, before it looks at the owner. An array or object of plain values passes here,
    and is refused by those who need a key."""
    if isinstance(index, String | Integer | Undefined):
        return
    inside = [index]
    if isinstance(index, Array):
        inside = index.items
    elif isinstance(index, Object):
        inside = list(index.entries.values())
    run.charge_items(len(inside))
    if not all(is_fixed(run, item) for item in inside):
        raise RunFault(f"Type: {index.type_name} is not allowed as object key")


def look_up(run: Run, owner: Value, index: Value, place: int) -> Value:
    """`owner[index]`, both defined. Raises `RunFault` for an index that the owner's type does not take."""
    found: Value | None = None
    if isinstance(owner, Object):
        found = owner.entries.get(key_of(run, index))
        if found.__class__ is Undefined:
            found = None
    elif isinstance(owner, Array | String):
        if isinstance(index, Integer | Boolean):
            found = item_at(run, owner, int(index.value))
    elif not isinstance(index, String):
        raise RunFault(f"Cannot access property with non-string: got {index.type_name}")
    if found is None and isinstance(index, String):
        wanted = text_of(run, index).decode("utf-8", "replace")
        run.trace.add(owner, wanted, place)
        method = find_method(owner, wanted)
        if method is not None:
            return Builtin(wanted, method, owner)
    mark_access(run, owner, index, place)
    if found is None:
        named = isinstance(owner, Object) or isinstance(index, String)
        return Undefined(text_of(run, index).decode("utf-8", "replace") if named else NOT_FOUND)
    run.trace.use(found, place)
    return found


def mark_access(run: Run, owner: Value, index: Value, place: int) -> None:
    """The marks of a member access that ran to its end (`dialect.md` section 8, rule 5)."""
    run.trace.use(index, place)
    if isinstance(owner, Object) or isinstance(index, String | Float | Array | Null):
        run.trace.add(owner, "object_access", place)
    elif isinstance(index, Integer | Boolean):
        run.trace.add(owner, "array_access", place)
    else:
        run.trace.use(owner, place)


def item_at(run: Run, owner: Array | String, index: int) -> Value | None:
    """The item at an index; negative ones count from the end of arrays, and find nothing in strings."""
    if isinstance(owner, Array):
        return owner.items[index] if -len(owner.items) <= index < len(owner.items) else None
    if not 0 <= index < owner.size:
        return None
    return string(text_of(run, owner)[index : index + 1], owner.is_input)


def slice_member(node: nodes.Member, inside: nodes.Slice) -> Evaluate:
    """`left[a:b:c]`: the method `slice`, with what is absent as None."""
    left, offset, place = compile_operand(node.left), node.offset, node.place
    parts = [None if part is None else compile_expression(part) for part in [*inside.parts, None, None, None][:3]]

    def evaluate(scope: Scope, run: Run) -> Value:
        try:
            owner = left(scope, run)
            start, stop, step = [None if part is None else part(scope, run) for part in parts]
            if step is not None:
                as_integer(step)  # llama.cpp wants it to be one before it asks whether there is anything to slice
            run.trace.add(owner, "slice", place)
            if find_method(owner, "slice") is None:
                raise RunFault(f"Unknown (built-in) filter 'slice' for type {owner.type_name}")
            run.charge(1)
            return slice_of(run, owner, start, stop, step)
        except RunFault as fault:
            fault.at("MemberExpression", offset)
            raise

    return evaluate


def lone_slice(node: nodes.Slice) -> Evaluate:
    raise AssertionError(f"a slice at {node.offset} outside of a member")


def call(node: nodes.Call) -> Evaluate:
    callee = compile_expression(node.callee)
    arguments = [compile_expression(argument) for argument in node.arguments]
    offset, place = node.offset, node.callee.offset

    def evaluate(scope: Scope, run: Run) -> Value:
        try:
            given = [argument(scope, run) for argument in arguments]
            function = callee(scope, run)
            if not isinstance(function, Function):
                raise RunFault(f"Callee is not a function: got {function.type_name}")
            run.steps -= 1
            run.place = place
            return function.invoke(run, scope, given)
        except RunFault as fault:
            fault.at("CallExpression", offset)
            raise

    return evaluate


def keyword(node: nodes.Keyword) -> Evaluate:
    value = compile_expression(node.value)
    key = node.key.name if isinstance(node.key, nodes.NameNode) else None
    offset = node.offset

    def evaluate(scope: Scope, run: Run) -> Value:
        if key is None:
            raise RunFault("Keyword argument key must be identifiers").at("KeywordArgumentExpression", offset)
        return KeywordArgument(key, value(scope, run))

    return evaluate


def spread(node: nodes.Spread) -> Evaluate:
    offset = node.offset

    def evaluate(scope: Scope, run: Run) -> Value:
        raise RunFault("cannot exec SpreadExpression").at("SpreadExpression", offset)

    return evaluate


def compile_filter(node: nodes.Expression) -> Callable[[Scope, Run, Evaluate], Value]:
    """What applies a filter to an operand: the operand is evaluated first, then the arguments, then the name."""
    wanted, arguments = named_call(node)
    wanted = ALIASES.get(wanted, wanted) if wanted is not None else None
    called = isinstance(node, nodes.Call)
    refusal = "Filter callee must be an identifier" if called else "Invalid filter expression"
    place = node.callee.offset if isinstance(node, nodes.Call) else node.offset

    def apply(scope: Scope, run: Run, operand: Evaluate) -> Value:
        value = operand(scope, run)
        if wanted is None:
            raise RunFault(refusal)
        given = [argument(scope, run) for argument in arguments]
        if not called and wanted in TAKES_TEXT and not isinstance(value, String | Undefined):
            value = string(text_of(run, value))
        run.trace.add(value, wanted, place)
        method = find_method(value, wanted)
        if method is None:
            raise RunFault(f"Unknown (built-in) filter '{wanted}' for type {value.type_name}")
        run.steps -= 1
        run.place = place
        return method(run, [value, *given])

    return apply


def named_call(node: nodes.Expression) -> tuple[str | None, list[Evaluate]]:
    """The name and arguments of `NAME` or `NAME(…)`; no name for anything else."""
    if isinstance(node, nodes.NameNode):
        return node.name, []
    if isinstance(node, nodes.Call):
        arguments = [compile_expression(argument) for argument in node.arguments]
        return (node.callee.name if isinstance(node.callee, nodes.NameNode) else None), arguments
    return None, []


def filtered(node: nodes.Filter) -> Evaluate:
    operand = compile_expression(node.operand)
    apply = compile_filter(node.filter)
    offset = node.offset

    def evaluate(scope: Scope, run: Run) -> Value:
        try:
            return apply(scope, run, operand)
        except RunFault as fault:
            fault.at("FilterExpression", offset)
            raise

    return evaluate


def test(node: nodes.Test) -> Evaluate:
    operand = compile_operand(node.operand)
    wanted, arguments = named_call(node.test)
    check = TESTS.get(wanted) if wanted is not None else None
    negated, offset = node.negated, node.offset
    operation = f"test_is_{wanted}"
    called = isinstance(node.test, nodes.Call)
    place = node.test.callee.offset if isinstance(node.test, nodes.Call) else node.test.offset

    def evaluate(scope: Scope, run: Run) -> Value:
        try:
            value = operand(scope, run)
            if wanted is None:
                raise RunFault("Test callee must be an identifier" if called else "Invalid test expression")
            given = [value, *[argument(scope, run) for argument in arguments]]
            if check is None:
                raise RunFault(f"Unknown test '{wanted}'")
            run.trace.add(value, operation, place)
            run.place = place
            return TRUE if check(run, given) is not negated else FALSE
        except RunFault as fault:
            fault.at("TestExpression", offset)
            raise

    return evaluate


def unary(node: nodes.Unary) -> Evaluate:
    operand = compile_operand(node.operand)
    offset = node.offset
    signed = operators.negate if node.operator == "-" else operators.affirm
    inverts = node.operator == "not"

    def evaluate(scope: Scope, run: Run) -> Value:
        try:
            value = operand(scope, run)
            if inverts:
                return FALSE if value.truth() else TRUE
            return signed(value)
        except RunFault as fault:
            fault.at("UnaryExpression", offset)
            raise

    return evaluate


def binary(node: nodes.Binary) -> Evaluate:
    if node.operator in ("and", "or"):
        return short_circuit(node)
    left, right = compile_operand(node.left), compile_operand(node.right)
    operator, offset = node.operator, node.offset
    joins = operator in ("~", "+")
    if operator in ("==", "!="):
        wanted = operator == "=="

        def compare(scope: Scope, run: Run) -> Value:
            return TRUE if equal(run, left(scope, run), right(scope, run)) is wanted else FALSE

        return compare

    def evaluate(scope: Scope, run: Run) -> Value:
        first, second = left(scope, run), right(scope, run)
        try:
            if joins and first.__class__ is second.__class__ is String:
                return operators.concatenate(run, first, second)
            return operators.apply(run, operator, first, second)
        except RunFault as fault:
            fault.at("BinaryExpression", offset)
            raise

    return evaluate


def short_circuit(node: nodes.Binary) -> Evaluate:
    left, right = compile_expression(node.left), compile_expression(node.right)
    stops_at, offset = node.operator == "or", node.offset

    def evaluate(scope: Scope, run: Run) -> Value:
        value = left(scope, run)
        try:
            stops = value.truth() is stops_at
        except RunFault as fault:
            fault.at("BinaryExpression", offset)
            raise
        return value if stops else right(scope, run)

    return evaluate


def ternary(node: nodes.Ternary) -> Evaluate:
    condition = compile_operand(node.condition)
    then, otherwise = compile_expression(node.then), compile_expression(node.otherwise)
    offset = node.offset

    def evaluate(scope: Scope, run: Run) -> Value:
        try:
            holds = condition(scope, run).truth()
        except RunFault as fault:
            fault.at("Ternary", offset)
            raise
        return then(scope, run) if holds else otherwise(scope, run)

    return evaluate


def select(node: nodes.Select) -> Evaluate:
    condition, value = compile_expression(unplaced(node.condition)), compile_expression(unplaced(node.value))
    offset = node.offset

    def evaluate(scope: Scope, run: Run) -> Value:
        try:
            return value(scope, run) if condition(scope, run).truth() else Undefined()
        except RunFault as fault:
            if fault.offset == UNPLACED:
                fault.node = None
            fault.at("SelectExpression", offset)
            raise

    return evaluate


def unplaced(node: nodes.Expression) -> nodes.Expression:
    """An operand of a `Select`: llama.cpp gives its own errors, not those further in, to the `Select`. A name has
    none, and its offset is where its value is read."""
    return node if isinstance(node, nodes.NameNode) else replace(node, offset=UNPLACED)


EXPRESSIONS: dict[type[nodes.Node], Callable[..., Evaluate]] = {
    nodes.NameNode: name,
    nodes.IntegerLiteral: integer_literal,
    nodes.FloatLiteral: float_literal,
    nodes.StringLiteral: string_literal,
    nodes.ArrayLiteral: array_literal,
    nodes.TupleLiteral: tuple_literal,
    nodes.ObjectLiteral: object_literal,
    nodes.Member: member,
    nodes.Slice: lone_slice,
    nodes.Call: call,
    nodes.Keyword: keyword,
    nodes.Spread: spread,
    nodes.Filter: filtered,
    nodes.Test: test,
    nodes.Unary: unary,
    nodes.Binary: binary,
    nodes.Ternary: ternary,
    nodes.Select: select,
}
