"""The Jinja2 environment in which transformers renders chat templates.

Source of every rule here: what `apply_chat_template` of transformers 5.24.0 does when asked.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import nodes
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace


class RaisedByTemplateError(TemplateError):
    """The template called `raise_exception`."""


@functools.cache
def environment() -> ImmutableSandboxedEnvironment:
    """The environment, made once: templates cannot change it. `strftime_now` comes with each render."""
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", GenerationBlock]
    )
    made.filters["tojson"] = tojson
    made.globals |= {"raise_exception": raise_exception, "dict": DictMaker(), "namespace": GuardedNamespace}
    return made


def strftime_at(now: float | None) -> Callable[[str], str]:
    """The function `strftime_now` of a render. `now`: seconds since the epoch, None for the clock; shown in local time,
    without a zone."""

    def strftime_now(format: str) -> str:  # noqa: A002 - templates may give it by name
        moment = datetime.now() if now is None else datetime.fromtimestamp(now)
        return moment.strftime(format)

    return strftime_now


def raise_exception(message: str) -> NoReturn:
    """The template's own way to fail."""
    raise RaisedByTemplateError(message)


def tojson(
    value: object,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON text as Python writes it: in Jinja2's own filter of this name, keys are sorted and HTML is escaped."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class GenerationBlock(Extension):
    """`{% generation %}…{% endgeneration %}` prints what stands inside. transformers can ask for the places of such
    blocks besides. The inside is a scope of its own, like that of `{% call %}`: it reads the variables outside, what it
    sets is gone after it, and a loop outside cannot be left from it."""

    tags = {"generation"}  # noqa: RUF012 - declared so by Jinja2

    def parse(self, parser: Parser) -> nodes.Node:
        """The nodes of one block; the parser stands on its first word."""
        line = parser.stream.expect("name:generation").lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_inside"), [], [], body, lineno=line)

    def _inside(self, caller: Callable[[], str]) -> str:
        return caller()


class DictMaker:
    """What templates know as `dict`: it can be called and has `fromkeys`, and no other attribute of the type."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any) -> dict[Any, Any]:
        """A dict with these keys, all of one value."""
        return dict.fromkeys(*args)


class GuardedNamespace(Namespace):
    """What templates know as `namespace`: no name in it may start with an underscore (a SecurityError)."""

    def __init__(self, /, *args: Any, **kwargs: Any) -> None:
        attributes = dict(*args, **kwargs)
        for name in attributes:
            _refuse_underscore(name)
        super().__init__(attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _refuse_underscore(name)
        super().__setitem__(name, value)


def _refuse_underscore(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace of a chat template cannot hold {name!r}: it starts with an underscore")
