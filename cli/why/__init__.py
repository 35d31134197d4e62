"""`readygate why pod` and `why node`: explain whether readygate is the cause, and what opens a node.

    command            gathers the facts, shows the answer
    blame              decides whether readygate keeps the pod off nodes; pure
    scheduler_message  parses kube-scheduler's message about a pod; pure
    pod_view           the fields of a Pod that matter here; pure
    pod_page, node_page   the pages; pure

Guarantees: an unknown answer is reported as unknown, with exit code 3. A pod is blamed on readygate only for nodes that
were refused in its last attempt. Imported by `cli.__main__`.
"""
