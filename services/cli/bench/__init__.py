"""A load generator for any server that speaks OpenAI's API, and what it measures.

It shares the machine with what it measures, so the path of a streamed chunk is short: a time stamp for each buffer
that the socket gives, a look at the bytes of each event, no JSON but for the first, the last and the odd ones.
"""
