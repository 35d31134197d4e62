"""What several commands share.

    arguments, configuration, errors   options, the extender's configuration file, one-line errors
    extender_client, port_forward      find the extenders and query them, through the API server or by URL
    queries, merge_answers             the queries of one command, and the answers of several extenders as one
    explain, addresses                 a decision in plain words; whether a URL is an extender's
    layout, terminal                   spans, paragraphs, tables; colours, progress, watching

Guarantees: only `layout.span` and `layout.line` put text of the cluster on a page. Imported by all commands; imports
none of them.
"""
