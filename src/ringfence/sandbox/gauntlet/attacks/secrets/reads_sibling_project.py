"""Reads a file of another project of the person.

family: secrets
arguments: {sibling}/notes.txt
judge: loot sibling
trace: sibling/notes.txt
"""

import sys

for path in (sys.argv[1], "../sibling/notes.txt"):
    try:
        with open(path) as file:
            print(file.read())
    except OSError as error:
        print(error)
