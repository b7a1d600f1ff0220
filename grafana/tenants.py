"""The dashboard of whoever gives budgets: who asks, who is held back, who uses what."""

from __future__ import annotations

from grafana.builder import Dashboard, Kind, Panel, Query, Row
from grafana.overview import OUTCOMES
from grafana.promql import mean, own, quantile, rate, share, total

_CHOSEN = 'tenant=~"$tenant"'
_NO_LIMIT = "no tenant has kv_tokens_in_flight"

_WHO = Row(
    "Who asks?",
    (
        Panel(
            title="Who sends how much?",
            action="Talk to the tenant, or change its policy.",
            unit="reqps",
            queries=(Query(rate("tenant_requests_total", _CHOSEN, by="tenant"), "{{tenant}}"),),
            stacked=True,
        ),
        Panel(
            title="How do their requests end?",
            action="rejected: what they send; shed: what they may; failed: our fault or a backend's.",
            unit="reqps",
            queries=(Query(rate("tenant_requests_total", _CHOSEN, by="tenant, outcome"), "{{tenant}} {{outcome}}"),),
            stacked=True,
        ),
        Panel(
            title="What share of each tenant's requests is well?",
            action="Look at the reasons: docs/errors.md.",
            unit="percentunit",
            queries=(
                Query(
                    share(
                        rate("tenant_requests_total", f'{_CHOSEN},outcome="ok"', by="tenant"),
                        rate("tenant_requests_total", _CHOSEN, by="tenant"),
                    ),
                    "{{tenant}}",
                ),
            ),
            share=True,
        ),
    ),
)

_BUDGETS = Row(
    "Who is held back?",
    (
        Panel(
            title="What does each tenant hold, and may it hold?",
            action="Raise the tenant's kv_tokens_in_flight, or add engines.",
            unit="none",
            queries=(
                Query(total("budget_reserved_tokens", _CHOSEN, by="tenant"), "{{tenant}} holds"),
                Query(f"max by (tenant) ({own('budget_limit_tokens', _CHOSEN)})", "{{tenant}} may hold"),
            ),
        ),
        Panel(
            title="How much of its budget does each tenant use?",
            action="Near 1: requests wait. Raise the budget, or look at output limits.",
            unit="percentunit",
            queries=(
                Query(
                    share(
                        f"max by (tenant) ({own('budget_reserved_tokens', _CHOSEN)})",
                        f"max by (tenant) ({own('budget_limit_tokens', _CHOSEN)})",
                    ),
                    "{{tenant}}",
                ),
            ),
            share=True,
            quiet=_NO_LIMIT,
        ),
        Panel(
            title="Who is refused?",
            action="Raise the tenant's budget; the rule is beside it.",
            unit="reqps",
            queries=(Query(rate("tenant_budget_refusals_total", _CHOSEN, by="tenant"), "{{tenant}}"),),
            quiet="nobody was refused by a budget",
        ),
        Panel(
            title="Which limit refuses?",
            action="Raise that limit, or add backends where it is backend_kv.",
            unit="reqps",
            queries=(Query(rate("budget_refusals_total", by="rule"), "{{rule}}"),),
            quiet="nobody was refused by a budget",
        ),
        Panel(
            title="How long is the line?",
            action="See which limit refuses, and the time spent in reserve.",
            unit="none",
            queries=(Query(total("budget_waiting_requests"), "waiting"),),
        ),
        Panel(
            title="How long do requests wait for their budget?",
            action="Raise the budget that refuses most.",
            unit="s",
            queries=(
                Query(mean("stage_duration_seconds", where='stage="reserve"'), "mean"),
                Query(quantile(0.95, "stage_duration_seconds", where='stage="reserve"'), "p95"),
            ),
        ),
    ),
)

_USE = Row(
    "Who uses what?",
    (
        Panel(
            title="How many tokens does each tenant use?",
            action="None.",
            unit="cps",
            queries=(
                Query(rate("tokens_total", f'{_CHOSEN},kind!="cached"', by="tenant, kind"), "{{tenant}} {{kind}}"),
            ),
            stacked=True,
        ),
        Panel(
            title="What share of prompts came from the engines' caches?",
            action="Low with long common prompts: see affinity on Routing.",
            unit="percentunit",
            queries=(
                Query(
                    share(
                        rate("tokens_total", f'{_CHOSEN},kind="cached"', by="tenant"),
                        rate("tokens_total", f'{_CHOSEN},kind="prompt"', by="tenant"),
                    ),
                    "{{tenant}}",
                ),
            ),
            share=True,
        ),
        Panel(
            title="What did we expect?",
            action="Compare with what was used.",
            unit="cps",
            queries=(Query(rate("estimated_tokens_total", by="kind"), "{{kind}}"),),
            stacked=True,
        ),
        Panel(
            title="Is our estimate right, by family?",
            action="Check the model's checkpoint and max_pixels; text is learnt.",
            unit="percentunit",
            queries=(
                Query(quantile(0.5, "estimate_ratio", by="family"), "median {{family}}"),
                Query(mean("estimate_ratio", by="family"), "mean {{family}}"),
            ),
            runbook="estimatedrift",
        ),
        Panel(
            title="How much is settled by estimate?",
            action="Let clients ask for usage (stream_options.include_usage).",
            unit="reqps",
            queries=(Query(rate("unverified_total", by="dialect"), "{{dialect}}"),),
            quiet="every answer tells its usage",
        ),
        Panel(
            title="How did all of them end, since the start?",
            action="None.",
            unit="none",
            queries=(Query(total("tenant_requests_total", _CHOSEN, by="tenant, outcome"), "requests"),),
            kind=Kind.TABLE,
            colours=OUTCOMES,
        ),
    ),
)

TENANTS = Dashboard(
    uid="vlmgw-tenants",
    title="vlm-gateway: tenants and budgets",
    about="Who asks, who is held back, who uses what.",
    rows=(_WHO, _BUDGETS, _USE),
    variables=(("tenant", 'label_values(vlmgw_budget_reserved_tokens{job=~"$job",instance=~"$instance"}, tenant)'),),
)
