"""What Prometheus reads of figures, by its own parser (C34.1)."""

from prometheus_client.parser import text_string_to_metric_families

from recado.http.routes.ops.exposition import counter, gauge, histogram, text_of

ODD = 'a "b"\\ \n é{}=,'


async def test_what_is_written_is_read_as_it_was() -> None:
    text = await text_of([
        counter("recado_things", "Things", ("route",), {("x",): 3, (ODD,): 10**17}),
        gauge("recado_now", "Now", (), {(): -2.5}),
        histogram("recado_seconds", "How long", ("batch",), (0.25, 1.0), [(("b",), (1, 0, 2), 4.5)]),
    ])  # fmt: skip
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }
    assert samples == {
        ("recado_things_total", "x"): 3,
        ("recado_things_total", ODD): 10**17,
        ("recado_now",): -2.5,
        ("recado_seconds_bucket", "b", "0.25"): 1,
        ("recado_seconds_bucket", "b", "1.0"): 1,
        ("recado_seconds_bucket", "b", "+Inf"): 3,
        ("recado_seconds_count", "b"): 3,
        ("recado_seconds_sum", "b"): 4.5,
    }
