"""The optional voice: a language model words what the engine found, and every sentence of it is
grounded or dropped. It finds nothing itself. Nothing here is imported unless it is configured.

    Conversation -> Given (`given`) -> a request (`request`) -> a server (`server`)
    -> proposed sentences (`reading`) -> those that are grounded (`grounding`) -> `Voice` (`voice`)
"""
