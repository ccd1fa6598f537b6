"""The conditions of the rules, one module a theme. Each takes facts and yields a match for every hit."""
