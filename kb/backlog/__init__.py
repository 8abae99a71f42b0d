"""The team's own backlog: closed issues, tickets, postmortems and FAQs become searchable leads."""
