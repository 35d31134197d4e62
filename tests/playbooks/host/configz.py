"""What /configz of a kube-scheduler says, read as the program on its host reads it, for tests of other folders too."""

from readygate_scheduler.proof import configuration_of

__all__ = ["configuration_of"]
