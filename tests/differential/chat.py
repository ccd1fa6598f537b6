"""Chat templates made by rules: what the templates of real models do, in random arrangements.

The probes judge by which parts of a conversation a template touches and how, so the rules are about ways of touching
them: content as text or as parts, tools and calls by member, by filter, by `items()`, arguments as text or as an
object, reasoning fields, efforts, and the conditions around them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.differential.grammar import Grammar


class ChatGrammar(Grammar):
    """Rules for whole templates."""

    def template(self) -> str:
        """A chat template: what comes before the messages, the loop over them, the generation prompt."""
        before = "".join(self.some((self.setup, self.effort, self.tools, self.system, self.raising), 0.4))
        after = "".join(self.some((self.prompt, self.effort, self.noise), 0.4))
        messages = self.messages() if self.often(0.95) else ""
        return before + messages + after

    def some(self, rules: Sequence[Callable[[], str]], probability: float) -> list[str]:
        """What some of these rules give, each taken with this probability, in any order."""
        taken = [rule for rule in rules if self.often(probability)]
        self.random.shuffle(taken)
        return [rule() for rule in taken]

    def when(self, condition: str, body: str, otherwise: str = "") -> str:
        """An `if` block."""
        if otherwise:
            otherwise = self.tag("else") + otherwise
        return self.tag(f"if {condition}") + body + otherwise + self.tag("endif")

    def each(self, target: str, iterable: str, body: str) -> str:
        """A `for` block."""
        return self.tag(f"for {target} in {iterable}") + body + self.tag("endfor")

    def get(self, holder: str, key: str) -> str:
        """A member, in one of the ways templates write it."""
        kinds = (f"{holder}.{key}", f"{holder}['{key}']", f"{holder}.get('{key}')", f"({holder}.{key} or '')")
        return self.random.choices(kinds, (6, 5, 1, 1))[0]

    def shown(self, value: str) -> str:
        """A value printed, filtered in one of the usual ways or not at all."""
        filters = ("", "", "", "|trim", "|tojson", "|string", "|upper", "|safe", "|default('')", " ~ '\\n'", "|length")
        return self.printed(value + self.one(filters))

    # -- before the messages ---------------------------------------------------------------------------------------

    def setup(self) -> str:
        return self.one(
            (
                self.tag("set ns = namespace(last=0, found=false, text='')"),
                self.tag("set messages = messages[1:]"),
                self.tag("set loop_messages = messages"),
                self.tag("set tools = tools if tools is defined else []"),
                self.tag("set enable_thinking = enable_thinking|default(true)"),
                self.tag("set messages = messages|list"),
                self.tag("set last = messages|last"),
                self.tag(f"set {self.bind()} = {self.expression(2)}"),
                self.macro(2),
            )
        )

    def effort(self) -> str:
        name = self.one(("reasoning_effort", "reasoning_effort", "reasoning_strength"))
        kinds = (
            self.when(f"{name} is defined", self.shown(name)),
            self.when(f"{name} == 'low'", "L"),
            self.when(f"{name} in ['low', 'high']", "K", self.raising()),
            self.tag(f"set level = {name}|default('medium')") + self.shown("level"),
            self.shown(name),
            self.tag(f"set effort = {name} if {name} is defined else 'medium'") + self.shown("effort"),
            self.when("enable_thinking is defined and enable_thinking", "T"),
            self.when(f"{name} is not none", "N"),
        )
        return self.one(kinds)

    def tools(self) -> str:
        function = self.one(("tool.function", "tool['function']", "tool"))
        named = self.one(("name", "name", "description", "parameters"))
        inside = self.one(
            (
                self.shown("tool"),
                self.shown(function),
                self.shown(self.get(function, named)),
                self.tag(f"set f = {function}") + self.shown(self.get("f", named)),
                self.when(f"'{named}' in {function}", self.shown(self.get(function, named))),
                self.each("k, v", f"{function}.parameters.properties.items()", self.shown("k") + self.shown("v.type")),
                self.each("k", function, self.shown("k")),
                self.shown("tool|tojson(indent=2)"),
            )
        )
        whole = self.one(
            (
                self.each(
                    "tool", self.one(("tools", "tools|list", "tools[:1]", "tools|selectattr('function')")), inside
                ),
                self.shown("tools|tojson"),
                self.shown("tools"),
                self.shown("tools|map(attribute='function')|list"),
                self.shown("tools[0].function.name"),
            )
        )
        condition = self.one(
            ("tools", "tools is defined and tools", "tools|length > 0", "tools is iterable", "not tools")
        )
        return self.when(condition, whole)

    def system(self) -> str:
        condition = self.one(
            (
                "messages[0].role == 'system'",
                "messages[0]['role'] == 'system'",
                "messages|first is mapping",
                "(messages|first).role in ['system', 'developer']",
                "messages[0].role != 'user'",
            )
        )
        body = self.shown(self.get("messages[0]", "content")) if self.often(0.8) else self.raising()
        if self.often(0.4):
            body += self.tag("set messages = messages[1:]")
        return self.when(condition, body)

    def raising(self) -> str:
        text = self.printed("raise_exception('not supported')")
        condition = self.one(
            (
                "messages|length > 2",
                "messages[0].role == 'tool'",
                "messages[0].content is not string",
                "not tools",
                "messages[-1].role != 'user'",
                "reasoning_effort is defined",
            )
        )
        return self.when(condition, text)

    # -- the messages --------------------------------------------------------------------------------------------

    def messages(self) -> str:
        """The loop over the messages, or two."""
        iterable = self.random.choices(
            (
                "messages",
                "loop_messages if loop_messages else messages",
                "messages if message.role != 'system'",
                "messages[::-1]",
                "messages|selectattr('role', 'equalto', 'user')",
                "messages[1:]",
                "messages|reverse",
                "messages|rejectattr('role', 'in', ['system'])",
                "range(messages|length)",
            ),
            (60, 5, 8, 4, 4, 5, 4, 3, 4),
        )[0]
        start = self.tag("set message = messages[message]") if iterable.startswith("range") else ""
        body = start + "".join(self.message_part() for _ in range(self.random.randint(1, 4)))
        return self.each("message", iterable, body)

    def message_part(self) -> str:
        part = self.random.choices(
            (self.content, self.calls, self.reasoning, self.role, self.noise, self.raising, self.state),
            (8, 7, 4, 3, 1, 1, 2),
        )[0]()
        if self.often(0.45):
            return self.when(self.message_condition(), part, self.content() if self.often(0.4) else "")
        return part

    def message_condition(self) -> str:
        role = self.one(("user", "assistant", "system", "tool"))
        return self.one(
            (
                f"message.role == '{role}'",
                f"message['role'] == '{role}'",
                f"message.role in ['{role}', 'system']",
                "loop.first",
                "not loop.last",
                "loop.index0 > 0",
                "message.content",
                "message.content is string",
                "message.content is not none",
                "message.tool_calls",
                "message.tool_calls is defined",
                "'tool_calls' in message",
                "message.get('tool_calls')",
                "message.content is defined and message.content is not none",
                "(message.role == 'user') != (loop.index0 % 2 == 0)",
                "loop.previtem and loop.previtem.role == 'assistant'",
                "loop.nextitem is undefined or loop.nextitem.role != 'tool'",
                self.condition(2),
            )
        )

    def role(self) -> str:
        return self.printed(
            self.one(("'<|' ~ message.role ~ '|>'", "message['role'] + '\\n'", "message.role|capitalize"))
        )

    def content(self) -> str:
        content = self.get("message", "content")
        part = self.one(
            (
                self.when("part.type == 'text'", self.shown("part.text"), "[image]"),
                self.shown("part.text"),
                self.shown("part"),
                self.when("part is string", self.shown("part"), self.shown("part['text']")),
                self.when("'text' in part", self.shown("part.text")),
            )
        )
        parts = self.each("part", content, part)
        kinds = (
            self.shown(content),
            parts,
            self.when(f"{content} is string", self.shown(content), parts),
            self.when(f"{content} is iterable and {content} is not string", parts, self.shown(content)),
            self.when(f"{content} is not string", parts),
            self.shown(f"{content}|selectattr('type', 'equalto', 'text')|map(attribute='text')|join('')"),
            self.shown(f"{content}[0].text"),
            self.shown(f"{content}[0]"),
            self.shown(f"{content}.split('</think>')[-1]"),
            self.tag(f"set content = {content}") + self.when("content is mapping", "M", self.shown("content")),
            self.shown(f"message.role ~ ': ' ~ {content}"),
            self.shown(f"{content}|replace('a', 'b')|trim"),
            self.shown("message"),
            self.each("k, v", "message.items()", self.shown("k") + self.shown("v")),
            self.shown(f"{content}[:4]"),
            self.when(f"{content}|length == 0", "E", self.shown(content)),
        )
        weights = (20, 4, 8, 4, 2, 3, 2, 2, 3, 4, 4, 3, 1, 1, 1, 1)
        return self.random.choices(kinds, weights)[0]

    def calls(self) -> str:
        function = self.one(("call.function", "call['function']", "call"))
        arguments = f"{function}.arguments"
        inside = self.one(
            (
                self.shown("call"),
                self.shown(function),
                self.shown(f"{function}.name"),
                self.shown(arguments),
                self.shown(f"{function}.name") + self.shown(f"{arguments}|tojson"),
                self.when(f"{arguments} is string", self.shown(arguments), self.shown(f"{arguments}|tojson")),
                self.each("k, v", f"{arguments}.items()", self.printed("k") + self.shown("v")),
                self.each("k, v", f"{arguments}|dictsort", self.printed("k") + self.shown("v")),
                self.each("k", arguments, self.shown(f"{arguments}[k]")),
                self.when(f"{arguments} is mapping", self.each("k", arguments, self.shown("k"))),
                self.tag("set call = call.function") + self.shown("call.arguments.arg"),
                self.when("not loop.first", self.raising_now()),
                self.shown(f"{arguments}['arg']"),
                self.shown("call.id") + self.when("call.id|length != 9", self.raising_now()),
            )
        )
        calls = self.get("message", "tool_calls")
        return self.one(
            (
                self.each("call", calls, inside),
                self.when(calls, self.each("call", calls, inside)),
                self.when("message.tool_calls is defined", self.each("call", calls, inside)),
                self.when("'tool_calls' in message and message.tool_calls", self.each("call", calls, inside)),
                self.when("message.role == 'assistant'", self.each("call", f"{calls} if call.function", inside)),
                self.when(f"{calls}", self.tag(f"set call = {calls}[0]") + inside.replace("loop.first", "true")),
                self.when(f"{calls}|length == 1", self.tag(f"set call = {calls}|first") + inside.replace("loop.", "")),
                self.shown(f"{calls}|tojson"),
                self.when("message.tool_calls is defined", self.raising_now()),
            )
        )

    def raising_now(self) -> str:
        return self.printed("raise_exception('one call only')")

    def reasoning(self) -> str:
        field = self.one(("reasoning_content", "reasoning_content", "reasoning", "thinking"))
        condition = self.one(
            (
                f"message.{field}",
                f"message.{field} is string",
                f"message.{field} is defined and enable_thinking",
                "loop.last",
                "preserve_thinking",
                "not clear_thinking",
                "loop.index0 > ns.last",
                "preserve_thinking is defined and preserve_thinking is true",
                "truncate_history_thinking is not defined or truncate_history_thinking",
            )
        )
        inside = self.one(
            (
                self.shown(f"message.{field}"),
                self.printed(f"'<think>' ~ message.{field} ~ '</think>'"),
                self.tag(f"set r = message.{field}|default('')|trim") + self.shown("r"),
                self.printed(f"'<think>\\n' + message.{field}.strip('\\n') + '\\n</think>'"),
            )
        )
        return self.when(condition, inside) if self.often(0.7) else inside

    def state(self) -> str:
        return self.one(
            (
                self.tag("set ns.last = loop.index0"),
                self.tag("set ns.text = ns.text ~ message.content"),
                self.tag("set seen = true"),
                self.tag("set content = message.content") + self.shown("content"),
                self.tag(f"if {self.message_condition()}")
                + self.tag(self.one(("continue", "break")))
                + self.tag("endif"),
            )
        )

    def noise(self) -> str:
        """Any statements at all."""
        return self.block(depth=2, size=2)

    # -- behind the messages -------------------------------------------------------------------------------------

    def prompt(self) -> str:
        thinking = self.when(self.one(("enable_thinking", "enable_thinking is false")), "<think>")
        return self.when("add_generation_prompt", "<|assistant|>" + (thinking if self.often(0.4) else ""))
