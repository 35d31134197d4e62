"""The program's part about the Lease of who leads, for tests of other folders too."""

from readygate_scheduler.lease import Lease

__all__ = ["Lease"]
