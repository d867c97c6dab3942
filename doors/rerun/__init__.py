"""Recorded episodes for Rerun's viewer.

`scene` tells an episode step by step, `rerun_file` writes that, and `command` is what a user says.
"""
