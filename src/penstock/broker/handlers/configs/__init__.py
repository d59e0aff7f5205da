"""Configurations: described, altered, listed; `allowing` is the one rule of who may.

Values are judged in `core/controller`; nothing here knows a configuration by name.
"""
