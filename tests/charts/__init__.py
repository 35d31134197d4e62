"""The chart `charts/readygate`, what is made of it (deploy/, its README), and what it is to equal (the roles' objects).

`rendering`: the chart rendered by helm. `manifests`: writes what is made of it, `make manifests`.
"""
