"""The engines' side: which backends there are, how they do, and the one HTTP client that talks to them.

Not decided here: where a request goes (``gateway.routing``) and whether it is sent again (the journey asks for a
resend and gets it only for what a backend certainly did not take).
"""
