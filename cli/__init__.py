"""The operator's command `readygate`, also installed as `kubectl readygate`.

    __main__   parses the arguments, runs one command, returns its exit code
    shared     client of the extenders, tables, terminal, options, explanations, errors
    COMMAND    one folder per command; cli/README.md lists them

Guarantees: an error is one line on standard error with cause and remedy. `--help` lists the exit codes. Text from the
cluster is made printable before it is shown. Commands import `shared`, `kube` and pure parts of `agent` and `extender`.
Nothing imports `cli`.
"""
