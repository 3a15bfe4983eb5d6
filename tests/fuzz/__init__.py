"""Wrong input of every kind, made up from fixed seeds: command lines, recipes, files, folders, calls.

Each kind is a module with a function `cases()`. What a case has to end in is `contract.py`'s to say. A name fixes
its case, whatever the day or the process, so a failure is repeated with `pytest -m '' tests/fuzz -k NAME`.
"""
