"""What several commands share.

    arguments        options of several commands; pure
    configuration    reads a configuration file of the extender
    errors           one-line errors, and what an error of the API server means to the user
    extender_client  finds the extenders and queries them, through the API server or by URL
    port_forward     forwards a port of a pod; the only importer of the package websocket
    queries          the queries of one command: to all extenders, page by page, and to the API server
    merge_answers    the answers of several extenders as one; pure
    explain          a decision in plain words; pure
    addresses        whether a URL is an extender's; pure
    layout           spans, paragraphs and tables that fit a width; pure
    terminal         width, colours, progress, watching

Guarantees: only `layout.span` and `layout.line` put text of the cluster on a page. Imported by all commands; imports
none of them.
"""
