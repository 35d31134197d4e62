"""The checks that readygate brings along, one file each, named as in the settings.

A check looks, within its time, and returns a Finding: passed, failed with the cause, or unknown when it could not look.

Guaranteed: it changes nothing on the node, never waits for a lock of others, and keeps nothing between two runs; what
it says is one line for people, without secrets.

Imported by `agent.checks.catalogue` only.
"""
