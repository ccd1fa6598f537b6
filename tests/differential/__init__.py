"""Our engine against the real one, on generated input: `python -m tests.differential --count N --seed S`.

- `grammar`, `chat`: small programs and chat templates, made by rules, with the words of `vocabulary`.
- `mutate`: existing templates, a little changed.
- `generate`: the input of a run: number I of seed S is the same wherever and whenever it is made.
- `flags`, `renders`: what is compared, whole templates by their flags, snippets by their output.
- `engine`: the real engine, asked thousands of times.
- `shrink`: a failure made small. `compare`: what all of them speak of.
"""
