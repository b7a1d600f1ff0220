"""What backends publish about their KV blocks, over ZeroMQ, kept as one index per publisher.

`wire` reads payloads, `feed` keeps one publisher's sequence (gaps, replays, restarts), `follower` is the thread with
the sockets and the only door to pyzmq, `service` is what routing asks. A publisher is nobody we can identify (ZeroMQ's
plain transport knows no names), so what it says moves requests between backends and does nothing else.
"""
