"""Instruments: what measures, plays, breaks and runs readygate. No test is here."""
