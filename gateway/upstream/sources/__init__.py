"""Where backends come from while the gateway runs, one file each: a file, DNS, Kubernetes.

Each tells complete answers (``settings.Source``); what is believed of them is decided in ``membership``.
"""
