"""Why a command cannot give its answer, in one line with cause and remedy."""

from component.command import EXIT_FAILED
from component.text import one_line
from kube import errors
from kube.errors import KubeError

CANNOT_KNOW = 3


class CommandError(Exception):
    """One line with cause and remedy. code: what the command ends with, if it has no better one."""

    def __init__(self, text: str, *, code: int = EXIT_FAILED) -> None:
        super().__init__(text)
        self.code = code


def api_problem(error: Exception, what: str) -> str:
    """One line with the cause and a remedy. what: the thing that was tried: "list pods"."""
    if isinstance(error, errors.Forbidden):
        return f"you may not {what}: {error.message}; ask for that right, or another --context"
    if isinstance(error, errors.Unauthorized):
        return f"the API server does not know you (401): cannot {what}; renew the credentials of the kubeconfig"
    if isinstance(error, errors.Unreachable):
        return f"the API server does not answer: cannot {what}: {error.message}; see --kubeconfig and --context"
    if isinstance(error, errors.ServerError | errors.TooManyRequests):
        busy = f"the API server fails or is busy: {error.reason}: {error.message}"
        return f"cannot {what}: {busy}; try again in a while"
    if isinstance(error, KubeError):
        return f"cannot {what}: the API server answers {error.reason}: {error.message}; is the kubeconfig's server one?"
    return f"cannot {what}: {one_line(error)}"
