"""Keeps the files by which the static pod's extender is known to the API server: authority, token, certificates.

    credentials.py --kubeconfig FILE --folder DIR --group N --namespace NAME --account NAME --days N
                   [--tls-secret NAME --tls-folder DIR] [--check]

Runs on the host, so that no key and no token leaves it; needs Python 3.6 and kubectl. Writes by rename, so that the
extender, which reads its files again while it runs, sees the old content or the new. The token is renewed when half of
its time is over, when the API server does not take it any more (another account of the same name, another key), and
when one that holds longer can be had. Prints one JSON object: {"changed": [names of files], "expires": seconds since
the epoch, "holds_s": seconds from its issue to its end, "short": whether that is less than was asked for}; the last
three are null where nothing is known of the token.
"""

import argparse
import base64
import json
import os
import subprocess
import sys
import time
from pathlib import Path

MODE = 0o640
SLACK_S = 60  # by so much less is as long


class HostError(Exception):
    """One line with cause and remedy."""


def kubectl(arguments, *command, **given):
    environ = dict(os.environ, PATH=os.environ.get("PATH", "") + ":/usr/local/bin:/opt/bin")
    argv = ["kubectl", "--kubeconfig", arguments.kubeconfig, *command]
    try:
        done = subprocess.run(
            argv,
            input=given.get("text", "").encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environ,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        raise HostError("kubectl %s: %s" % (command[0], e)) from e
    if done.returncode != 0:
        raise HostError("kubectl %s: %s" % (" ".join(command[:2]), done.stderr.decode(errors="replace").strip()))
    return done.stdout.decode()


def claims_of(token):
    """What the token says of itself; {} for what is none."""
    try:
        part = token.split(".")[1]
        return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode())
    except (IndexError, ValueError):
        return {}


def is_young(claims, wall):
    """Whether less than half of its time is over."""
    try:
        return wall < (claims["iat"] + claims["exp"]) / 2
    except (KeyError, TypeError):
        return False


def holds_s(claims):
    """For how long it was issued; None where it does not say."""
    try:
        return claims["exp"] - claims["iat"]
    except (KeyError, TypeError):
        return None


def is_short(arguments, claims):
    """Whether the API server has given less than is asked for; None where that is not known."""
    held_s = holds_s(claims)
    return None if held_s is None else held_s < arguments.days * 86400 - SLACK_S


def is_taken(arguments, token):
    """Whether the API server takes it for the account that it is to be of."""
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    said = json.loads(kubectl(arguments, "create", "--filename=-", "--output=json", text=json.dumps(asked)))
    status = said.get("status", {})
    name = "system:serviceaccount:%s:%s" % (arguments.namespace, arguments.account)
    return bool(status.get("authenticated")) and status.get("user", {}).get("username") == name


def wanted_token(arguments, present):
    """The one that is there if it is good for long enough, else a new one."""
    claims = claims_of(present)
    stays = bool(present) and is_young(claims, time.time()) and is_taken(arguments, present)
    if stays and (arguments.check or not is_short(arguments, claims)):
        return present
    if arguments.check:
        return "renewed"
    duration = "--duration=%dh" % (24 * arguments.days)
    new = kubectl(
        arguments, "create", "token", arguments.account, "--namespace=" + arguments.namespace, duration
    ).strip()
    longer = (holds_s(claims_of(new)) or 0) > (holds_s(claims) or 0) + SLACK_S
    return present if stays and not longer else new


def authority(arguments):
    view = json.loads(kubectl(arguments, "config", "view", "--raw", "--minify", "--flatten", "--output=json"))
    found = view["clusters"][0]["cluster"].get("certificate-authority-data")
    if not found:
        raise HostError("%s names no certificate authority: the extender would trust nobody" % arguments.kubeconfig)
    return base64.b64decode(found).decode()


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


def put(path, content, arguments):
    """Whether it was written: by rename, readable by root and the extender's group alone."""
    if read(path) == content:
        return False
    if arguments.check:
        return True
    temporary = path.with_name(path.name + ".new")
    descriptor = os.open(str(temporary), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchown(descriptor, os.getuid(), arguments.group)
        os.fchmod(descriptor, MODE)
        file.write(content)
        file.flush()
        os.fsync(descriptor)
    temporary.rename(path)
    return True


def run(arguments):
    token_file = arguments.folder / "token"
    token = wanted_token(arguments, read(token_file).strip())
    files = {arguments.folder / "ca.crt": authority(arguments), token_file: token + "\n"}
    if arguments.tls_secret:
        files.update((arguments.tls_folder / name, text) for name, text in secret(arguments).items())
    changed = [path.name for path, content in sorted(files.items()) if put(path, content, arguments)]
    claims = claims_of(token)
    return {
        "changed": changed,
        "expires": claims.get("exp"),
        "holds_s": holds_s(claims),
        "short": is_short(arguments, claims),
    }


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("kubeconfig", "namespace", "account"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--group", type=int, required=True)
    parser.add_argument("--days", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--tls-secret", default="")
    parser.add_argument("--tls-folder", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args(argv)
    try:
        print(json.dumps(run(arguments)))
    except (HostError, OSError) as e:
        sys.stderr.write("%s\n" % e)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
