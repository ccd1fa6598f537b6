"""`python -m scanner`"""

from scanner.cli import main

main()
