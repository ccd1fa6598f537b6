"""What Python Jinja2 makes of a chat template, set up as `transformers` does: the reference beside llama.cpp's engine.

Follows transformers 5.24.0 on Jinja2 3.1.6, by what `apply_chat_template(…, tokenize=False)` shows from outside;
transformers itself is not needed. `tests/reference/test_transformers.py` holds the two against each other where it is
installed, and is where a later version's changes will show.

`ReferenceProcess` renders in a process of its own, inside limits of time and memory: the only door for templates from
files. `ReferenceTemplate` renders in this process, where only output and nesting are limited.
"""

from scanner.reference.process import ReferenceProcess, ReferenceProcessError
from scanner.reference.renderer import ReferenceSyntaxError, ReferenceTemplate
from scanner.reference.result import ErrorKind, ReferenceError, ReferenceResult  # noqa: A004 - of this package
from scanner.reference.variables import variables_of, variables_of_request

__all__ = [
    "ErrorKind",
    "ReferenceError",
    "ReferenceProcess",
    "ReferenceProcessError",
    "ReferenceResult",
    "ReferenceSyntaxError",
    "ReferenceTemplate",
    "variables_of",
    "variables_of_request",
]
