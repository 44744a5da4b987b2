"""The command line: `main.py` holds the commands, `tables.py` what they print, `terminal.py` where it goes."""
