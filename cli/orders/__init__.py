"""What operators order: `readygate hold`, `pause`, `exempt`, `arm`, `disarm`, `lift`, and `orders`, which lists them.

    command   arguments -> an order, put in or taken out -> what is said of it
    checks    does what is named exist, and how many nodes does it cover?
    store     the ConfigMap that all extenders read: read, put, take out; nobody else's entry is ever lost
    entries   a scope, an expiry, an id and a value of the ConfigMap out of words, and back into words; pure

Guaranteed: the entry is read back by the extenders' own rules before it is written; a broken entry of somebody else is
left alone. Imported by `cli.__main__`.
"""
