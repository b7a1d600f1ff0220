"""The generated part of docs/scale.md: tables from the numbers in docs/scale.json, and from nothing else. Pure."""

from __future__ import annotations

from typing import Any, cast

BEGIN = "<!-- written by: python -m benchmarks scale --write docs/scale.md -->"
END = "<!-- end of what is written -->"


def put(page: str, report: dict[str, object]) -> str:
    """The page with its generated part renewed. Raises ValueError where it has no place for one."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} ... {END}")
    return f"{before}{BEGIN}\n\n{block(report)}\n\n{END}{after}"


def block(report: dict[str, object]) -> str:
    """All tables."""
    measured, computed = (cast("dict[str, Any]", report[name]) for name in ("measured", "computed"))
    parts = [_measured(report, measured), _parts(measured, computed), _simulated(report)]
    return "\n\n".join("\n".join(lines) for lines in parts)


def _measured(report: dict[str, object], measured: dict[str, Any]) -> list[str]:
    machine = cast("dict[str, Any]", report["machine"])
    lines = [
        f"Measured on {machine['cpus']} cores ({machine['cpu']}), load {machine['load_average_1min']}; CPU time.",
        "",
        "| one request | loop, CPU ms | workers, CPU ms | body in | image bytes, in → out |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {name.replace('_', ' ')} | {each['loop_cpu_ms']:.2f} | {each['worker_cpu_ms']:.2f} |"
        f" {each['request_bytes'] / 1e3:,.0f} KB |"
        f" {each['image_bytes_in'] / 1e3:,.0f} → {each['image_bytes_out'] / 1e3:,.0f} KB |"
        for name, each in measured["requests"].items()
    ]
    return lines


def _parts(measured: dict[str, Any], computed: dict[str, Any]) -> list[str]:
    rows = [*_carrying(measured, computed), *_knowing(measured, computed), *_keeping(measured, computed)]
    return ["| part | one costs | at this size |", "| --- | --- | --- |", *(f"| {a} | {b} | {c} |" for a, b, c in rows)]


def _carrying(measured: dict[str, Any], computed: dict[str, Any]) -> list[tuple[str, str, str]]:
    """What requests themselves need."""
    load, cpu, network, redis = (computed[name] for name in ("load", "cpu", "network", "redis"))
    cost, asked = measured["redis"]["server_cpu_us_per_request"], measured["redis"]
    each = f"{load['of_a_gateway']} a gateway, {load['of_a_backend']:.1f} a backend"
    processes = f"{cpu['processes_of_a_gateway']} processes a gateway"
    wires = f"{network['gbit_per_s_in_of_a_gateway']} Gbit/s in, {network['gbit_per_s_out_of_a_gateway']} out a gateway"
    core = f"one core carries {redis['requests_per_s_of_one_core']:,} requests/s: {redis['shards']} masters"
    return [
        ("load", "one image a request", f"{load['requests_per_s']:,} requests/s; {each}"),
        (
            "loop",
            f"{cpu['loop_ms']} CPU ms of the mix",
            f"{processes} (one carries {cpu['requests_per_s_of_one_loop']}/s)",
        ),
        ("workers", f"{cpu['worker_ms']} CPU ms of the mix", f"{cpu['worker_cores_of_a_gateway']} cores a gateway"),
        ("cores", "loops and workers", f"{cpu['cores_of_all']:,} in all"),
        (
            "network",
            f"{network['bytes_in'] / 1e3:,.0f} KB in, {network['bytes_out'] / 1e3:,.0f} KB out",
            f"{wires}; {network['gbit_per_s_in_of_all']} in of all",
        ),
        (
            "Redis",
            f"{asked['scripts_per_request']} scripts, {max(cost.values())} µs of its core",
            f"{redis['scripts_per_s']:,} scripts/s; {core}",
        ),
        (
            "hot tenant",
            f"one slot: {cost['one_tenant']} µs",
            f"{redis['hot_tenant_requests_per_s']:,} requests/s at most",
        ),
        (
            "asking Redis",
            f"{asked['gateway_cpu_us_per_request']} µs of the loop",
            f"{redis['gateway_loop_share']:.0%} of a loop",
        ),
    ]


def _knowing(measured: dict[str, Any], computed: dict[str, Any]) -> list[tuple[str, str, str]]:
    """What it takes to know backends and other gateways."""
    watching, hints, kv = (computed[name] for name in ("watching", "hints", "kv_events"))
    decision = measured["decision_us"]
    often = f"{watching['looks_per_s_of_a_gateway']:.0f} looks/s, each backend every {watching['every_s']:.0f} s"
    taken = f"{watching['loop_share']:.0%} of a loop (every 5 s: {watching['loop_share_every_5_s']:.0%})"
    asked = f"{watching['requests_per_s_at_a_backend']} requests/s at a backend"
    told = f"{hints['mbyte_per_s_out_of_redis']} MB/s out of Redis"
    followed = f"{kv['backends_for_a_tenth_of_a_core']} backends take a tenth of one"
    return [
        (
            "decision",
            f"{decision['1000']} µs among 1,000 ({decision['100']} among 100)",
            f"{computed['decision']['loop_share']:.0%} of a loop",
        ),
        (
            "watching",
            f"{watching['look_cpu_ms']} CPU ms a look",
            f"{often}: {taken}, {watching['mbyte_per_s_of_a_gateway']} MB/s; {asked}",
        ),
        (
            "hints",
            f"{measured['hints']['hearing_cpu_us_per_image']} µs an image heard",
            f"{hints['heard_per_s_of_a_gateway']:,}/s: {hints['loop_share']:.0%} of a loop; {told}",
        ),
        (
            "KV events",
            f"{measured['kv_events']['cpu_us_per_block']} µs a block",
            f"{kv['blocks_per_s']:,} blocks/s to each gateway: {kv['cores_of_a_gateway']} cores; {followed}",
        ),
    ]


def _keeping(measured: dict[str, Any], computed: dict[str, Any]) -> list[tuple[str, str, str]]:
    """What is held, told and waited for."""
    memory, watching, restarts = (computed[name] for name in ("memory", "watching", "restarts"))
    needed = f"{memory['index_entries_needed']:,} entries, {memory['index_mib_needed']} MiB"
    bodies = f"{memory['slab_mib']} MiB of bodies, {memory['prepared_cache_mib']} MiB of prepared images"
    series = watching["series_of_a_gateway"]
    return [
        (
            "index",
            f"{measured['index_bytes_per_entry']} bytes an entry",
            f"{needed} (limit {memory['index_mib_limit']} MiB)",
        ),
        (
            "memory",
            f"process {memory['process_mib']:.0f} MiB, worker {memory['worker_mib']:.0f} MiB",
            f"and up to {bodies} a process",
        ),
        ("metrics", "series of a gateway", f"{series:,}; {50 * series:,} in all"),
        (
            "rolling restart",
            f"{restarts['turn_s']:.0f} s a turn, streams of a minute",
            f"{restarts['one_by_one_min']} min one by one, {restarts['five_at_a_time_min']} min five at a time",
        ),
    ]


def _simulated(report: dict[str, object]) -> list[str]:
    lines = [
        "| simulated | hits: before | worst slice | at the end | p99: before | worst | at the end | back after |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    notes = []
    for workload, events in cast("dict[str, Any]", report["simulated"]).items():
        for event, each in events.items():
            phases = (each["before"], each["worst_slice"], each["at_the_end"])
            hits = " | ".join(f"{phase['hit_share']:.3f}" for phase in phases)
            firsts = " | ".join(f"{phase['ttft_p99_s']} s" for phase in phases)
            back = "not in the run" if each["back_after_s"] is None else f"{each['back_after_s']:.0f} s"
            lines.append(f"| {workload}: {event.replace('_', ' ')} | {hits} | {firsts} | {back} |")
        loss = events["zone_loss"]
        lost = f"of {loss['in_flight_at_the_loss']:,} in flight {loss['lost_with_the_zone']:,} were lost with the zone"
        resent = f"{loss['resent_after_a_refused_connection']:,} met a refused connection and went elsewhere"
        notes.append(f"* {workload}: {loss['requests']:,} requests in {loss['simulated_s']} s; {lost}, {resent}.")
    return [*lines, "", *notes]
