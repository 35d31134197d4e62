"""`make chaos`: rows of the scorecard (docs/reliability.md) in which parts are cut, frozen, killed or set back.

What a row is says `tools.soak.rows`. Everything runs on loopback and ends by itself.
"""
