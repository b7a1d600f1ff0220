"""What a model's own files say of it: config.json, preprocessor_config.json, processor_config.json.

Decided here: how their fields become the numbers we count with, and that a field that cannot be is an error with its
name. Not decided here: where the files are (the shell reads them), and what overrides them.
"""
