"""Runs the cases of ``tests/cases`` (format: ``tests/cases/FORMAT.md``) against a real gateway process."""
