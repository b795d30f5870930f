"""Linting: source code that will leak or not fit is found before it runs.

`lint.py` reads files and asks the rules; `rules/` has one file a rule. What the rules share:
`program` (a file, parsed), `scopes` and `names` (what a name means), `loops` (what is repeated),
`following` (functions of the same file), `kinds` (what an expression is), `folding`, `shapes` and
`layers` (how large it is), `pipelines` (datasets), `functions` (what is traced), `order` (what
runs before what), `keeping` (what outlives a turn). Nothing of the linted code is executed.
"""
