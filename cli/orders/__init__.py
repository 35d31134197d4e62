"""Orders of operators: `readygate hold`, `pause`, `exempt`, `arm`, `disarm`, `lift`, and `orders`, which lists them.

    command   checks an order, writes or lifts it, shows the result
    checks    whether the gate, pool and node exist, and how many nodes the order covers
    store     reads and writes the ConfigMap that all extenders read
    entries   converts orders to entries of the ConfigMap, and back to words; pure
    page      the order that was written, and the list of orders; pure

Guarantees: an order is parsed by the extenders' own rules before it is written. Entries of other authors, valid or not,
are never changed. Imported by `cli.__main__`.
"""
