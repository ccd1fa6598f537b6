"""Commands that are more than a few lines, and what commands share. `scanner.cli` puts them together."""
