"""Keeps the credentials of the static pod's extender on this host: API token, certificate authority, TLS certificate.

    credentials.py --kubeconfig FILE --folder DIR --group N --namespace NAME --account NAME --hours N
                   [--tls-secret NAME --tls-folder DIR] [--when-due]

The play runs it. A systemd timer runs it once a minute with --when-due: then it ends at once, without asking the API
server, while the token is young. Runs on the host, so that no key and no token leaves it; needs Python 3.6 and kubectl.

A token is due for renewal when a quarter of its life is over, by what the token itself states: the API server may give
a shorter one than --hours asks for. A token that lives longer than that is due too, and so is one that was issued in
the future: the clock was set back, and no API server accepts it. Without --when-due, a token that the API server does
not accept is replaced as well (its account was made again, or the API server signs with another key).

Files are replaced by a rename: the extender, which reads them again while it runs, sees the old content or the new one.
On any failure the old content stays, and the exit status is 1 with one line on standard error. One process at a time
works; another one waits for it. Prints one JSON object: {"changed": [names of files]}.
"""

import argparse
import base64
import contextlib
import fcntl
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

MODE = 0o640
DUE_PART = 4  # renewed after a quarter of its life: three quarters are left for an API server that is away
SLACK_S = 60  # clocks of two hosts differ, and the API server allows the same
KUBECTL_LIMIT_S = 30.0
REQUEST_LIMIT = "--request-timeout=20s"
ERROR_MOST = 300  # characters of what kubectl reports
TOKEN = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+){2}")
REMEDIES = (
    (r"[Uu]nauthorized|logged in", "the API server refuses %(file)s: renew it (kubeadm certs renew admin.conf)"),
    (r"[Ff]orbidden", "name the kubeconfig of an administrator in readygate_extender_kubeconfig and run site.yml"),
    (r'" not found', "run site.yml, which makes it again"),
)


class HostError(Exception):
    """One line with cause and remedy."""


def one_line(text):
    words = " ".join(text.split())
    return "".join(letter if letter.isprintable() else "?" for letter in words)[:ERROR_MOST]


def kubectl(arguments, *command, **given):
    if not Path(arguments.kubeconfig).exists():
        raise HostError(
            "%s is missing: write it again (kubeadm init phase kubeconfig admin), or name another one in"
            " readygate_extender_kubeconfig and run site.yml" % arguments.kubeconfig
        )
    environ = dict(os.environ, PATH=os.environ.get("PATH", "") + ":/usr/local/bin:/opt/bin")
    argv = ["kubectl", "--kubeconfig", arguments.kubeconfig, REQUEST_LIMIT, *command]
    try:
        done = subprocess.run(
            argv,
            input=given.get("text", "").encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environ,
            timeout=KUBECTL_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as e:
        raise HostError("kubectl %s: no answer within %g s" % (command[0], KUBECTL_LIMIT_S)) from e
    except OSError as e:
        raise HostError("kubectl %s: %s" % (command[0], e)) from e
    if done.returncode != 0:
        error = one_line(done.stderr.decode(errors="replace"))
        remedies = [text % {"file": arguments.kubeconfig} for pattern, text in REMEDIES if re.search(pattern, error)]
        raise HostError("; ".join(["kubectl %s: %s" % (" ".join(command[:2]), error), *remedies[:1]]))
    return done.stdout.decode(errors="replace")


def lifetime(token):
    """When it was issued and when it ends, in seconds since the epoch, as the token itself states; None if it does
    not. That is what the extender goes by too."""
    try:
        part = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode())
        return int(claims["iat"]), int(claims["exp"])
    except (ArithmeticError, IndexError, KeyError, RecursionError, TypeError, ValueError):
        return None


def is_due(token, hours, wall):
    """Whether it must be renewed by its age alone."""
    known = lifetime(token)
    if known is None:
        return True
    issued, ends = known
    is_long = ends - issued > hours * 3600 + SLACK_S
    return is_long or not issued - SLACK_S <= wall < issued + (ends - issued) // DUE_PART


def is_accepted(arguments, token):
    """Whether the API server accepts it, for the account that it must be of."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    answer = json.loads(kubectl(arguments, "create", "--filename=-", "--output=json", text=json.dumps(review)))
    status = answer.get("status", {})
    name = "system:serviceaccount:%s:%s" % (arguments.namespace, arguments.account)
    return bool(status.get("authenticated")) and status.get("user", {}).get("username") == name


def new_token(arguments):
    duration = "--duration=%dh" % arguments.hours
    namespace = "--namespace=" + arguments.namespace
    token = kubectl(arguments, "create", "token", arguments.account, namespace, duration).strip()
    if not TOKEN.fullmatch(token) or lifetime(token) is None:
        raise HostError("kubectl create token: the API server returned no token that states when it ends")
    return token


def authority(arguments):
    view = json.loads(kubectl(arguments, "config", "view", "--raw", "--minify", "--flatten", "--output=json"))
    data = view["clusters"][0]["cluster"].get("certificate-authority-data")
    if not data:
        raise HostError(
            "%s names no certificate authority: the extender could trust no API server" % arguments.kubeconfig
        )
    return base64.b64decode(data).decode()


def secret(arguments):
    """The files of the Secret for TLS."""
    command = ("get", "secret", arguments.tls_secret, "--namespace=" + arguments.namespace, "--output=json")
    data = json.loads(kubectl(arguments, *command))["data"]
    missing = [name for name in ("tls.crt", "tls.key", "ca.crt") if name not in data]
    if missing:
        raise HostError("Secret %s lacks %s" % (arguments.tls_secret, ", ".join(missing)))
    return {name: base64.b64decode(data[name]).decode() for name in ("tls.crt", "tls.key", "ca.crt")}


def read(path):
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def put(path, content, group):
    """Whether it was written: by rename, readable by root and the extender's group alone."""
    if read(path) == content:
        return False
    temporary = path.with_name(path.name + ".new")
    try:
        descriptor = os.open(str(temporary), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchown(descriptor, os.getuid(), group)
            os.fchmod(descriptor, MODE)
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        temporary.rename(path)
    except OSError:  # a full disk: the little that is left is not for half a file
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    return True


def report_renewal(token):
    """For the journal."""
    issued, ends = lifetime(token)
    at = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(t)) for t in (ends, issued + (ends - issued) // DUE_PART)]
    sys.stderr.write("the extender's API token was renewed: it ends at %s, the next renewal is due at %s\n" % tuple(at))


def run(arguments):
    """The token first: what else fails must not keep the extender without one."""
    token_file = arguments.folder / "token"
    present = read(token_file).strip()
    due = is_due(present, arguments.hours, time.time())
    if arguments.when_due and not due:
        return {"changed": []}
    changed = []
    if due or not is_accepted(arguments, present):
        token = new_token(arguments)
        if put(token_file, token + "\n", arguments.group):
            changed.append("token")
            report_renewal(token)
    files = {arguments.folder / "ca.crt": authority(arguments)}
    if arguments.tls_secret:
        files.update((arguments.tls_folder / name, text) for name, text in secret(arguments).items())
    changed += [path.name for path, content in sorted(files.items()) if put(path, content, arguments.group)]
    return {"changed": changed}


@contextlib.contextmanager
def alone(folder):
    """While it lasts, no other process does this. The folder around it is locked, which the pod does not see: it could
    keep the lock for ever."""
    descriptor = os.open(str(folder.resolve().parent), os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("kubeconfig", "namespace", "account"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--group", type=int, required=True)
    parser.add_argument("--hours", type=int, required=True, help="how long a token is asked for")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--tls-secret", default="")
    parser.add_argument("--tls-folder", type=Path)
    parser.add_argument("--when-due", action="store_true", help="end at once while the token is young")
    arguments = parser.parse_args(argv)
    try:
        with alone(arguments.folder):
            print(json.dumps(run(arguments)))
    except (HostError, OSError) as e:
        sys.stderr.write("%s\n" % e)
        return 1
    except (IndexError, KeyError, TypeError, ValueError) as e:
        sys.stderr.write("what kubectl printed cannot be used: %s\n" % one_line(repr(e)))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
