"""The operator's command `readygate`, also installed as `kubectl readygate`.

One folder per command, and `shared`; cli/README.md lists them. `__main__` parses the arguments, runs one command, and
returns its exit code.

Guarantees: an error is one line on standard error with cause and remedy. `--help` lists the exit codes. Text from the
cluster is made printable before it is shown. Commands import `shared`, `kube` and pure parts of `agent` and `extender`.
Nothing imports `cli`.
"""
