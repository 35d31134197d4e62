"""Errors of the commands, each one line with cause and remedy."""

from component.command import EXIT_FAILED
from component.text import one_line
from kube import errors
from kube.errors import KubeError

EXIT_UNKNOWN = 3  # the question of the command cannot be answered


class CommandError(Exception):
    """A command failed. The text is one line with cause and remedy. code: the exit code of the command."""

    def __init__(self, text: str, *, code: int = EXIT_FAILED) -> None:
        super().__init__(text)
        self.code = code


def api_problem(error: Exception, what: str) -> str:
    """Explains an error of the API server in one line with cause and remedy. what: "list pods", for example."""
    if isinstance(error, errors.Forbidden):
        return f"you may not {what}: {error.message}; ask for that right, or another --context"
    if isinstance(error, errors.Unauthorized):
        return f"the API server does not know you (401): cannot {what}; renew the credentials of the kubeconfig"
    if isinstance(error, errors.Unreachable):
        return f"the API server does not answer: cannot {what}: {error.message}; check --kubeconfig and --context"
    if isinstance(error, errors.ServerError | errors.TooManyRequests):
        busy = f"the API server failed or is busy: {error.reason}: {error.message}"
        return f"cannot {what}: {busy}; try again in a while"
    if isinstance(error, KubeError):
        return (
            f"cannot {what}: the API server answers {error.reason}: {error.message}; check the server in the kubeconfig"
        )
    return f"cannot {what}: {one_line(error)}"
