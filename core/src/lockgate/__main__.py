"""`python -m lockgate`, for where the script `lockgate` is not on the path."""

from lockgate.cli.main import main

main()
