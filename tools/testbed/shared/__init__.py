"""What ring 2 and ring 3 share.

`binaries`: the Kubernetes components, built from the Go module in `kube/` once and found in the cache.
`processes`, `runs`: children with a log and a ledger, and the folder of one run, by which a later run ends exactly what
a crashed one left.
`obstacles`: what the machine lacks, told before anything is built; `nameserver`: for clusters without DNS.
`api`, `bare`: a client of a real API server, and nodes and pods that are API objects only.

Guarantees: no process is ever signalled by its bare number; no two runs share a folder or logs.
Imports `tools.kit`, `images` and the words of `kube.contract`; knows neither `plane` nor `hosts`.
"""
