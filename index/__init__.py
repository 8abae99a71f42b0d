"""How documents are found: encoder, FAISS, lexical search, signatures, and the store of it all.

Knows documents and text, not incidents; it could serve any corpus.
"""
